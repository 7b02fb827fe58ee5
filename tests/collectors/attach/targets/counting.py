"""Counts like a program that trains: threads that fight for the interpreter lock and allocate, and threads that are parked.

It counts until its input ends, then prints ``right`` if every part of every sum was.
"""

# ruff: noqa: T201 - what it prints is read by tests

import hashlib
import queue
import sys
import threading
import time


def work(over: threading.Event, results: "list[bool]") -> None:
    total = 0
    while not over.is_set():
        parts = [bytes(size) for size in range(100, 2000, 50)]
        texts = {str(number): [number] * 20 for number in range(200)}
        hashlib.sha256(b"x" * 10000).digest()  # without the interpreter lock
        is_right = sum(map(len, parts)) == sum(range(100, 2000, 50)) and sum(map(len, texts.values())) == 4000
        total += is_right
        if not is_right:
            return
        time.sleep(0.0001)
    results.append(total > 0)


def take(numbers: "queue.Queue[int | None]", sums: "list[int]") -> None:
    total = 0
    while (number := numbers.get()) is not None:
        total += number
    sums.append(total)


def give(numbers: "queue.Queue[int | None]", over: threading.Event, given: "list[int]") -> None:
    number = 0
    while not over.is_set():
        numbers.put(number)
        number += 1
        time.sleep(0.005)
    given.append(sum(range(number)))
    numbers.put(None)


def main() -> None:
    """Starts them, and adds up."""
    numbers: queue.Queue[int | None] = queue.Queue()
    over = threading.Event()
    sums: list[int] = []
    given: list[int] = []
    results: list[bool] = []
    threads = [threading.Thread(target=over.wait) for _ in range(3)]
    threads += [threading.Thread(target=work, args=(over, results)) for _ in range(2)]
    threads += [threading.Thread(target=take, args=(numbers, sums)), threading.Thread(target=give, args=(numbers, over, given))]
    for thread in threads:
        thread.start()
    print("ready", flush=True)
    sys.stdin.read()
    over.set()
    for thread in threads:
        thread.join()
    print("right" if results == [True, True] and sums == given else "wrong", flush=True)


if __name__ == "__main__":
    main()
