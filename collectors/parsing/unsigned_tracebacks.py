"""Whose an exception is that nobody signs, as torch before 2.2 printed them, where the launcher of the same log tells. Pure.

One exception, and one rank that ended with an exit code while the launcher ended all others (SIGTERM): it is that rank's. With
more of either nothing is certain, since whoever loses a peer raises and ends with a code as well.
"""

import signal
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from pardbg.collectors.parsing.rank_log import RankTraceback
from pardbg.watchdog.model.log_event import LauncherFailure


def give_to_reported(tracebacks: Sequence[RankTraceback], failures: Iterable[LauncherFailure]) -> tuple[RankTraceback, ...]:
    """The tracebacks of a log, the only one with the rank that its launcher reports, if that is certain."""
    rank = _only_failed(tuple(failures))
    if rank is None or len(tracebacks) != 1 or not _is_one_of_nobody(tracebacks[0]):
        return tuple(tracebacks)
    (found,) = tracebacks
    return (replace(found, rank=rank, traceback=replace(found.traceback, is_by_launcher=True)),)


def _only_failed(failures: tuple[LauncherFailure, ...]) -> int | None:
    ended = {failure.rank: failure for failure in failures if failure.rank is not None}
    pids = {failure.pid for failure in ended.values()}
    if any(failure.rank is None and failure.pid not in pids for failure in failures):
        return None  # another process, whose rank is not told
    own = [failure for failure in ended.values() if failure.code != -signal.SIGTERM]
    return own[0].rank if len(own) == 1 and own[0].code > 0 else None


def _is_one_of_nobody(found: RankTraceback) -> bool:
    seen = found.traceback
    return found.rank is None and not (seen.is_consequence or seen.is_doubtful or seen.is_passed or seen.others)
