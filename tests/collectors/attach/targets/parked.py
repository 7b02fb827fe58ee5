"""Parks one thread in a system call, for a shot to borrow: ``parked.py CALL SECONDS``. Prints the result and how long it took.

The main thread waits for it. Written for every Python that may be attached to.
"""

# ruff: noqa: T201 - what it prints is read by tests

import ctypes
import os
import select
import socket
import sys
import threading
import time
from collections.abc import Callable

LIBC = ctypes.CDLL(None, use_errno=True)
HOLDING = ctypes.PyDLL(None)  # whoever calls this holds the interpreter lock


class Time(ctypes.Structure):
    """`struct timespec`, or `struct timeval`."""

    _fields_ = [("seconds", ctypes.c_long), ("rest", ctypes.c_long)]

    @classmethod
    def of(cls, seconds: float) -> "Time":
        """A span."""
        return cls(int(seconds), int(seconds % 1 * 1e9))


ACTIONS: "list[tuple[float, Callable[[], object]]]" = []


def later(seconds: float, action: "Callable[[], object]") -> None:
    """Done by the main thread, which is never borrowed."""
    ACTIONS.append((time.monotonic() + seconds, action))


def nanosleep(seconds: float) -> int:
    return int(LIBC.nanosleep(ctypes.byref(Time.of(seconds)), None))


def python_sleep(seconds: float) -> None:
    time.sleep(seconds)


def c_sleep(seconds: float) -> int:
    return int(LIBC.usleep(int(seconds * 1e6)))


def sleep_keeping_rest(seconds: float) -> int:
    span = Time.of(seconds)
    return int(LIBC.nanosleep(ctypes.byref(span), ctypes.byref(span)))


def poll(seconds: float) -> int:
    return int(LIBC.poll(None, 0, int(seconds * 1000)))


def epoll(seconds: float) -> int:
    return int(LIBC.epoll_wait(EPOLL.fileno(), BUFFER, 1, int(seconds * 1000)))


def select_(seconds: float) -> int:
    return int(LIBC.select(0, None, None, None, ctypes.byref(Time(int(seconds), int(seconds % 1 * 1e6)))))


def timed_lock(seconds: float) -> int:
    lock = threading.Lock()
    lock.acquire()
    return int(lock.acquire(timeout=seconds))


def lock(seconds: float) -> int:
    lock = threading.Lock()
    lock.acquire()
    later(seconds, lock.release)
    return int(lock.acquire())


def futex(seconds: float) -> int:
    return int(LIBC.syscall(202, ctypes.byref(ctypes.c_int(0)), 0, 0, ctypes.byref(Time.of(seconds)), None, 0))


def recv(seconds: float) -> int:
    one, other = socket.socketpair()
    later(seconds, lambda: other.send(b"x"))
    return len(one.recv(9))


def accept(seconds: float) -> int:
    server = socket.create_server(("127.0.0.1", 0))
    later(seconds, lambda: socket.create_connection(server.getsockname()))
    return int(server.accept()[0].fileno() > 0)


def read(seconds: float) -> int:
    out, into = os.pipe()
    later(seconds, lambda: os.write(into, b"abc"))
    return len(os.read(out, 9))


def wait4(seconds: float) -> int:
    child = os.fork()
    if not child:
        time.sleep(seconds)
        os._exit(5)
    return os.waitpid(child, 0)[1] >> 8


def holding(seconds: float) -> int:
    return int(HOLDING.usleep(int(seconds * 1e6)))


EPOLL = select.epoll()
BUFFER = ctypes.create_string_buffer(64)
CALLS = {name: call for name, call in globals().items() if callable(call)}


def park(call: str, seconds: float) -> None:
    ctypes.set_errno(77)
    began = time.monotonic()
    result = CALLS[call](seconds)
    print(call, result, round(time.monotonic() - began, 3), flush=True)


if __name__ == "__main__":
    threading.stack_size(int(os.environ.get("STACK_BYTES", "0")))
    name, seconds = sys.argv[1], float(sys.argv[2])
    thread = threading.Thread(target=park, args=(name, seconds))
    print("ready", flush=True)
    thread.start()
    while thread.is_alive():
        for due, action in ACTIONS[:]:
            if time.monotonic() >= due:
                ACTIONS.clear()
                action()
        thread.join(0.002)
    print("threads", threading.active_count(), flush=True)
