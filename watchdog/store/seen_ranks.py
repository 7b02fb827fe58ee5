"""What evidence tells of the number of ranks, and of which of them anything was read. Pure.

Logs name ranks and do not say that there are no more: of 3 ranks that sign lines there may be 8, or 4096.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pardbg.watchdog.model.evidence import Absence, LogTraceback, SchedulerEnding
from pardbg.watchdog.model.log_event import CommunicatorStep, LogSeen, StoreBarrier
from pardbg.watchdog.model.ras import RasSeen
from pardbg.watchdog.store.ras_polls import largest_answered

if TYPE_CHECKING:
    from pardbg.watchdog.store.view import EvidenceView

_OF_LOGS = (Absence, LogSeen, LogTraceback, SchedulerEnding, RasSeen)  # what a file of text may hold, whoever signs its lines
MAX_UNREAD = 16  # more than these, and to name them tells nothing
_READ_PER_UNREAD = 4


def told_world_size(view: "EvidenceView") -> int | None:
    """The number of ranks where anything tells it, and not only the largest that logs name."""
    is_described = bool(view.job.world_size or view.job.ranks or view.recordings or view.traces.ranks)
    is_told = is_described or any(
        item.rank is not None and not isinstance(item.observation, _OF_LOGS) for item in view.evidence
    )
    return view.world_size if is_told or max(_sizes(view)) >= (view.world_size or 1) else None


def doubted(view: "EvidenceView", silent: Iterable[int]) -> dict[int, str]:
    """Who of silent ranks may be the one, and why: whose log was read, and few others where the size of the world is told.

    A gap of some among many that were read is named all the same: the world has them.
    """
    read, silent = read_ranks(view), list(silent)
    found = {rank: "its log says nothing" for rank in silent if rank in read}
    unread = [rank for rank in silent if rank not in read]
    is_gap = _READ_PER_UNREAD * len(unread) <= len(read)
    is_told = len(unread) <= MAX_UNREAD and (is_gap or told_world_size(view) is not None)
    return dict(sorted({**found, **dict.fromkeys(unread if is_told else (), "nothing of it was read")}.items()))


def read_ranks(view: "EvidenceView") -> frozenset[int]:
    """The ranks of which anything was read: a log, a dump, a stack, how the process is or ended."""
    read = {item.rank for item in view.evidence if not isinstance(item.observation, Absence)}
    known = {rank for rank, process in view.processes.items() if process.state or process.exit_code is not None}
    return frozenset(rank for rank in {*read, *known} if rank is not None)


def _sizes(view: "EvidenceView") -> list[int]:
    """How many ranks communicators have, and how many the store waits for."""
    events = [event for item in view.logs if isinstance(item.observation, LogSeen) for event in item.observation.events]
    communicators = [event.size for event in events if isinstance(event, CommunicatorStep)]
    stores = [event.world_size for event in events if isinstance(event, StoreBarrier)]
    return [*communicators, *stores, largest_answered(view.evidence)]
