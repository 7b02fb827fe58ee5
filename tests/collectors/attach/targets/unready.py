"""A process at which nobody may shoot, or only in vain for a while: ``unready.py KIND``; ends by itself within some seconds."""

# ruff: noqa: T201 - what it prints is read by tests

import ctypes
import signal
import sys
import threading
import time

LIBC = ctypes.CDLL(None)
HOLDING = ctypes.PyDLL(None)  # whoever calls this holds the interpreter lock


def park(seconds: float) -> threading.Thread:
    thread = threading.Thread(target=lambda: LIBC.usleep(int(seconds * 1e6)), daemon=True)
    thread.start()
    return thread


def holds(seconds: str) -> None:
    """The main thread holds the interpreter lock; one other waits for something else."""
    thread = park(0.3)
    time.sleep(0.1)
    print("ready", flush=True)
    HOLDING.usleep(int(float(seconds) * 1e6))
    thread.join()


def wait_for_interpreter(seconds: str) -> None:
    """All others wait for the interpreter lock."""
    threads = [threading.Thread(target=time.sleep, args=(0.05,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    print("ready", flush=True)
    HOLDING.usleep(int(float(seconds) * 1e6))
    for thread in threads:
        thread.join()


def handles_signal() -> None:
    """One thread is in the handler of a signal, in C."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [])
    LIBC.signal(2, ctypes.cast(LIBC.sleep, ctypes.c_void_p))  # sleeps as many seconds as the signal's number
    thread = park(3)
    time.sleep(0.2)
    signal.pthread_kill(thread.ident or 0, 2)
    time.sleep(0.2)
    print("ready", flush=True)
    thread.join()


def ends() -> None:
    """The interpreter has ended, the process has not."""
    getattr(LIBC, "__cxa_atexit")(ctypes.cast(LIBC.pause, ctypes.c_void_p), None, None)
    park(4)
    signal.alarm(4)
    print("ready", flush=True)


def loads(library: str, slow: str) -> None:
    """A thread that knows nothing of Python is in `dlopen`."""
    park(4)
    ctypes.CDLL(library).load_in_thread(slow.encode())
    time.sleep(0.2)
    print("ready", flush=True)
    time.sleep(3.5)


def waits_for_mutex(library: str) -> None:
    """One thread waits for a mutex of C."""
    threading.Thread(target=ctypes.CDLL(library).wait_for_mutex, daemon=True).start()
    time.sleep(0.1)
    print("ready", flush=True)
    time.sleep(1)


def waits_for_child(library: str) -> None:
    """One thread is in an uninterruptible call."""
    threading.Thread(target=ctypes.CDLL(library).wait_for_child, args=(2,)).start()
    time.sleep(0.1)
    print("ready", flush=True)


def gets_signals() -> None:
    """Ends when the signal has come for which one thread waits."""
    seen = []
    signal.signal(signal.SIGUSR1, lambda *_: seen.append(1))
    thread = park(2.0)
    print("ready", flush=True)
    thread.join()
    print("seen", len(seen), flush=True)


def small_stacks() -> None:
    threading.stack_size(256 * 1024)
    thread = park(1.5)
    print("ready", flush=True)
    thread.join()


def parked() -> None:
    thread = park(1.5)
    print("ready", flush=True)
    thread.join()


def alone() -> None:
    print("ready", flush=True)
    time.sleep(1)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
