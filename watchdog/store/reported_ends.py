"""What logs say of the world itself: its size, and how ranks ended, where nobody who looked at them knows better."""

from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from pardbg.watchdog.model.evidence import Evidence, RankDescription
from pardbg.watchdog.model.log_event import (
    BarrierFailed,
    CommunicatorStep,
    FingerprintMismatch,
    GroupStatus,
    LauncherFailure,
    LogSeen,
    StallNamed,
    StoreBarrier,
)
from pardbg.watchdog.model.members import MAX_WORLD_SIZE

_GONE = frozenset({None, "gone", "X", "Z"})


def with_reported_ends(known: Mapping[int, RankDescription], logs: Iterable[Evidence]) -> dict[int, RankDescription]:
    """The descriptions with the exit codes of launchers' reports; a process that was seen alive is another attempt's."""
    described = dict(known)
    for failure in launcher_failures(logs):
        rank = failure.rank
        if rank is None or rank >= MAX_WORLD_SIZE:
            continue
        seen = described.get(rank, RankDescription(rank=rank, host=failure.host, local_rank=failure.local_rank))
        if seen.exit_code is None and seen.state in _GONE:
            described[rank] = replace(seen, pid=seen.pid or failure.pid, state="gone", exit_code=failure.code)
    return dict(sorted(described.items()))


def launcher_failures(logs: Iterable[Evidence]) -> Iterator[LauncherFailure]:
    """All that launchers report, the last of each rank last."""
    for item in logs:
        if isinstance(item.observation, LogSeen):
            yield from (event for event in item.observation.events if isinstance(event, LauncherFailure))


def largest_communicator(logs: Iterable[Evidence]) -> int:
    """The number of ranks of the largest group that logs tell of: the world has at least as many. 0 without any.

    NCCL tells the size of a communicator, the store how many shall come. Others name ranks: a monitored barrier those that did
    not come, a watchdog the one that gave up, detail mode those that differ.
    """
    events = [event for item in logs if isinstance(item.observation, LogSeen) for event in item.observation.events]
    sizes = [event.size for event in events if isinstance(event, CommunicatorStep)]
    sizes += [rank + 1 for event in events if isinstance(event, BarrierFailed | StallNamed) for rank in event.absent]
    sizes += [event.world_size for event in events if isinstance(event, StoreBarrier)]
    sizes += [(event.timed_out or 0) + 1 for event in events if isinstance(event, GroupStatus)]
    prints = (side for event in events if isinstance(event, FingerprintMismatch) for side in (event.own, event.other))
    sizes += [side.group_rank + 1 for side in prints if side is not None]
    return max((size for size in sizes if size <= MAX_WORLD_SIZE), default=0)
