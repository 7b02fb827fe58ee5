"""A process at which nobody may shoot, or only in vain for a while: ``unready.py KIND``; it ends with its input, or soon."""

# ruff: noqa: T201 - what it prints is read by tests

import ctypes
import faulthandler
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
    thread = park(2.5)  # longer than a busy machine needs before it shoots
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


def wait_for_end() -> None:
    print("ready", flush=True)
    sys.stdin.read()


def handles_signal() -> None:
    """One thread is in the handler of a signal, in C."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [])
    LIBC.signal(30, ctypes.cast(LIBC.sleep, ctypes.c_void_p))  # sleeps as many seconds as the signal's number
    thread = park(60)
    time.sleep(0.2)
    signal.pthread_kill(thread.ident or 0, 30)
    time.sleep(0.2)
    wait_for_end()


def ends() -> None:
    """The interpreter has ended, the process has not."""
    getattr(LIBC, "__cxa_atexit")(ctypes.cast(LIBC.pause, ctypes.c_void_p), None, None)
    park(60)
    print("ready", flush=True)


def loads(library: str, slow: str) -> None:
    """A thread that knows nothing of Python is in `dlopen`."""
    park(60)
    ctypes.CDLL(library).load_in_thread(slow.encode())
    time.sleep(0.2)
    wait_for_end()


def waits_for_mutex(library: str) -> None:
    """One thread waits for a mutex of C."""
    threading.Thread(target=ctypes.CDLL(library).wait_for_mutex, daemon=True).start()
    time.sleep(0.1)
    wait_for_end()


def waits_for_child(library: str) -> None:
    """One thread is in an uninterruptible call."""
    threading.Thread(target=ctypes.CDLL(library).wait_for_child, args=(2,)).start()
    time.sleep(0.1)
    print("ready", flush=True)


def is_in_child_of_vfork(library: str) -> None:
    """The process itself is in an uninterruptible call; another thread is parked."""
    park(2.5)
    time.sleep(0.1)
    print("ready", flush=True)
    ctypes.CDLL(library).wait_for_child(2)


def computes(library: str) -> None:
    """With the interpreter lock held it waits for a worker of its library, again and again."""
    holding = ctypes.PyDLL(library)
    holding.start_worker()
    print("ready", flush=True)
    print("done", holding.compute(30, 50000), flush=True)


def watches() -> None:
    """A thread of faulthandler is there, for whose end Python waits with the interpreter lock held."""
    faulthandler.dump_traceback_later(100)
    print("ready", flush=True)
    HOLDING.usleep(1000000)
    faulthandler.cancel_dump_traceback_later()


def allocates(library: str) -> None:
    """A thread of C allocates all the time."""
    park(60)
    ctypes.CDLL(library).allocate_in_thread()
    wait_for_end()


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
    park(60)
    wait_for_end()


def parked() -> None:
    park(60)
    wait_for_end()


def alone() -> None:
    wait_for_end()


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
