"""Starts torch's own worker server on a socket in the rank's folder: it answers without the GIL, so also while a rank hangs.

Cost: under 1 ms, nine threads that sleep. It is never shut down: `shutdown` waits for ever if the server has not come up yet
(measured with torch 2.13), and so does the destructor, with the GIL held, in a child that a fork has left without the threads.
So one reference is kept for good. torch says on standard error that it listens; for the moment of the start its level of
logging is raised, so that the job's output stays what it was.
"""

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterator
from types import ModuleType

_LONGEST_PATH = 100  # 108 with its end
_LEVEL = "FLAGS_caffe2_log_level"
_ERROR = 2


def start_server(path: str, bindings: ModuleType) -> None:
    """Starts it.

    Args:
        path: of the socket.
        bindings: ``torch._C._distributed_c10d``.

    Raises:
        AttributeError: if this torch has none.
        OSError: if the path is too long for a socket.
        RuntimeError: if the socket may not be made.
    """
    make = bindings._WorkerServer  # noqa: SLF001 - torch has no public way
    if len(os.fsencode(path)) > _LONGEST_PATH:
        raise OSError(f"{path} is too long for a socket")
    with _quiet():
        server = make(path)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(server))


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
