"""Starts torch's own worker server on a socket in the rank's folder: it answers without the GIL, so also while a rank hangs.

Cost: under 1 ms, nine threads that sleep. It is never shut down: `shutdown` waits for ever if the server has not come up yet
(measured with torch 2.13), and so does the destructor, with the GIL held, in a child that a fork has left without the threads.
So one reference is kept for good. Where one of its threads cannot be made, torch ends the process: so they are tried before.
torch says on standard error that it listens; for the moment of the start its level of logging is raised, so that the job's
output stays what it was.
"""

import _thread
import contextlib
import ctypes
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import ModuleType

_LONGEST_PATH = 100  # 108 with its end
_LEVEL = "FLAGS_caffe2_log_level"
_ERROR = 2
_TRIED_THREADS = 16  # the server starts nine
_PATIENCE_S = 1.0
_FATAL = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT, signal.SIGTRAP}


def start_server(path: str, bindings: ModuleType, asked: int | None = None) -> None:
    """Starts it.

    Args:
        path: of the socket.
        bindings: ``torch._C._distributed_c10d``.
        asked: the signal by which others ask for stacks: the server's threads, which nobody waits for, shall take it.

    Raises:
        AttributeError: if this torch has none.
        OSError: if the path is too long for a socket, or the user has limited the memory that threads would take.
        RuntimeError: if the socket, or a thread, may not be made.
    """
    make = bindings._WorkerServer  # noqa: SLF001 - torch has no public way
    if len(os.fsencode(path)) > _LONGEST_PATH:
        raise OSError(f"{path} is too long for a socket")
    if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
        raise OSError("address space is limited: no worker server")
    _try_threads()
    with _quiet(), _blocking_signals(asked):
        server = make(path)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(server))


def _try_threads() -> None:
    """As many threads at once as the server will start, and some more; it waits until they are gone.

    Raises:
        RuntimeError: if there cannot be so many.
    """
    gate = _thread.allocate_lock()
    started: list[int] = []

    def wait() -> None:
        started.append(threading.get_native_id())
        with gate:
            pass

    with gate:
        for _ in range(_TRIED_THREADS):
            _thread.start_new_thread(wait, ())
    deadline_s = time.monotonic() + _PATIENCE_S
    while len(started) < _TRIED_THREADS or any(os.path.exists(f"/proc/self/task/{number}") for number in started):
        if time.monotonic() > deadline_s:
            raise RuntimeError("threads that were tried do not end")
        time.sleep(0.0002)


@contextlib.contextmanager
def _blocking_signals(asked: int | None) -> Iterator[None]:
    """Threads inherit what is blocked: the program's signals are for its own threads, which may wait for them."""
    blocked = signal.valid_signals() - _FATAL - {asked}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without torch's warnings, where its level of logging can be found."""
    try:
        folder = os.path.dirname(sys.modules["torch"].__file__ or "")
        level = ctypes.c_int.in_dll(ctypes.CDLL(os.path.join(folder, "lib", "libc10.so")), _LEVEL)
    except (KeyError, OSError, ValueError):
        yield
        return
    before = level.value
    level.value = max(before, _ERROR)
    try:
        yield
    finally:
        level.value = before
