"""The lock of a state folder: an agent holds it as long as it runs."""

import contextlib
import fcntl
import os
from pathlib import Path

LOCK_NAME = "agent.lock"


def is_held(folder: Path) -> bool:
    """Whether an agent runs on this state folder; False if it cannot be told. If none does, this holds it for a moment."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder / LOCK_NAME, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
    return False
