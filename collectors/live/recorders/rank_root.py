"""The root of a rank in another mount namespace, held while its files are read; `inside.py` tells the cost and the rights."""

import contextlib
import os
from collections.abc import Iterator

from pardbg.collectors.inside import NoOpenat2Error, RankRoot, open_root
from pardbg.collectors.live.recorders.trusted_file import RefusedError
from pardbg.watchdog.model.names import AbsenceReason

_ELSEWHERE = "its files lie in another mount namespace"


@contextlib.contextmanager
def opened_root(whose: RankRoot | None) -> Iterator[int | None]:
    """A handle of the root at which a rank's paths begin; None for our own.

    Raises:
        RefusedError: if it cannot be had: the process has ended, we have no right, or the kernel has no `openat2`.
    """
    if whose is None:
        yield None
        return
    handle = _open(whose)
    try:
        yield handle
    finally:
        os.close(handle)


def _open(whose: RankRoot) -> int:
    origin = b"/proc/%d/root" % whose.pid
    try:
        return open_root(whose)
    except ProcessLookupError as error:
        raise RefusedError(AbsenceReason.GONE, "its process has ended", origin) from error
    except NoOpenat2Error as error:
        detail = (
            f"{_ELSEWHERE}, and openat2 is not to be had here (Linux 5.6, no filter against it): run pardbg in its container"
        )
        raise RefusedError(AbsenceReason.UNSUPPORTED, detail, origin) from error
    except PermissionError as error:
        detail = f"{_ELSEWHERE}, which we may not enter: run pardbg as root, or in its container"
        raise RefusedError(AbsenceReason.DENIED, detail, origin) from error
    except OSError as error:
        detail = f"{_ELSEWHERE}, which cannot be entered ({error.strerror}): run pardbg in its container"
        raise RefusedError(AbsenceReason.UNREACHABLE, detail, origin) from error
