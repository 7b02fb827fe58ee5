"""What the probes of ranks have counted of their routing, in one look, as evidence.

Cost: that of `vitals/routing_file.py`: some milliseconds a rank. No child process where the files lie in memory by their usual
names; else one for all ranks, with a deadline of `WITHIN_S`. The ranks notice nothing. A rank without such a file is normal (no
probe, or no router), and no absence; one whose file cannot be read is. Leaves nothing behind.
"""

import time
from collections.abc import Iterator, Mapping, Sequence

from pardbg.collectors.inside import RankRoot
from pardbg.collectors.live.moment import now_rfc3339
from pardbg.collectors.live.probe.place import folder_of
from pardbg.collectors.probe.places import ROUTING_FILE
from pardbg.collectors.reading import Reader, Task
from pardbg.collectors.reading_job import ProbeRequest, RoutingRead, RoutingRequest
from pardbg.collectors.reading_protocol import FileRead, Reply
from pardbg.collectors.vitals.page_file import is_near
from pardbg.collectors.vitals.routing_file import open_routing
from pardbg.watchdog.model.evidence import Absence, Evidence
from pardbg.watchdog.model.names import AbsenceReason, CollectorName
from pardbg.watchdog.model.routing import RoutingSeries
from pardbg.watchdog.model.world import RankProcess

WITHIN_S = 5.0
_TRIES = 3  # a step that is being written tears a look, and another file may take the place of this one
_BETWEEN_S = 0.02


def read_routing_files(ranks: Sequence[RankProcess]) -> Iterator[Evidence]:
    """One series a rank that has any; an absence for one whose counts cannot be read."""
    far = [rank for rank in ranks if not is_near(rank)]
    replies = ask_for_routing(far)
    for rank in ranks:
        seen = _read_near(rank) if is_near(rank) else _told(replies.get(rank.rank))
        if seen is not None:
            yield _evidence(rank, seen)


def ask_for_routing(ranks: Sequence[RankProcess]) -> Mapping[int, Reply]:
    """What a child process makes of each rank's file, by rank. Those that gave no answer in time are left out."""
    folders = ((rank, folder_of(rank.own_pid, rank.started_ticks, rank.own_uid, rank.recorder)) for rank in ranks)
    tasks = [Task(request=_request(rank, folder), path=str(rank.rank)) for rank, folder in folders if folder is not None]
    if not tasks:
        return {}
    with Reader(deadline_s=WITHIN_S / 2) as reader:
        return {int(path): reply for path, reply in reader.ask(tasks, within_s=WITHIN_S).items()}


def _request(rank: RankProcess, folder: bytes) -> RoutingRequest:
    inside = None if rank.is_at_home else RankRoot(pid=rank.pid, started_ticks=rank.started_ticks)
    return RoutingRequest(
        probe=ProbeRequest(folder=folder, pid=rank.own_pid, started_ticks=rank.started_ticks, uid=rank.uid, inside=inside)
    )


def _read_near(rank: RankProcess) -> RoutingSeries | Absence | None:
    for attempt in range(_TRIES):
        if attempt:
            time.sleep(_BETWEEN_S)
        file = open_routing(rank)
        if file is None:
            return None
        try:
            series = file.read()
        finally:
            file.close()
        if series is not None:
            return series if series.rows else None
    return _unreadable("torn, spoilt, or another process's", AbsenceReason.UNREADABLE)


def _told(reply: Reply | None) -> RoutingSeries | Absence | None:
    if isinstance(reply, RoutingRead):
        return reply.series if reply.series is not None and reply.series.rows else None
    if isinstance(reply, FileRead) and reply.problem is not None:
        return _unreadable(reply.problem.detail, reply.problem.reason)
    return None


def _unreadable(why: str, reason: AbsenceReason) -> Absence:
    return Absence(reason=reason, detail=f"what its probe has counted of routing cannot be read: {why}")


def _evidence(rank: RankProcess, seen: RoutingSeries | Absence) -> Evidence:
    return Evidence(
        source=CollectorName.ROUTING,
        rank=rank.rank,
        host=rank.host,
        observed_at=now_rfc3339(),
        observation=seen,
        origin=f"{ROUTING_FILE} of pid {rank.pid}",
    )
