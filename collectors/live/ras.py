"""What NCCL's RAS service says of a job, asked on the node of its first rank.

Cost to the job: RAS asks all its processes once, over connections of its own, in a thread of its own. Versions of NCCL have
crashed when asked more often than every 15 s, so nobody is asked who was asked within `LEAST_PAUSE_S`. Deadline: `WITHIN_S`.
It leaves an empty file in the folder for temporary files, whose age says when RAS was asked last.
"""

import os
import re
import tempfile
from collections.abc import Sequence

from pardbg.collectors.live.moment import now_rfc3339
from pardbg.collectors.live.ras_asking import LEAST_PAUSE_S, listeners
from pardbg.collectors.reading import Reader, Task
from pardbg.collectors.reading_job import RasRead, RasRequest
from pardbg.collectors.reading_protocol import FileRead, Reply
from pardbg.watchdog.model.evidence import Absence, Evidence, Observation
from pardbg.watchdog.model.names import AbsenceReason, CollectorName
from pardbg.watchdog.model.world import RankProcess

PORT = 28028  # NCCL's default
WITHIN_S = 3.0
_START_S = 0.5  # what the child takes to start
_FIRST_RANK = 0
PLACE_NAME = "NCCL_RAS_ADDR"
_OWN_PLACE = re.compile(r"(?:localhost|127\.0\.0\.1|\[::1\]):(\d{1,5})")


def read_ras(
    ranks: Sequence[RankProcess],
    *,
    within_s: float = WITHIN_S,
    folder: str | None = None,
    command: Sequence[str] | None = None,
) -> tuple[Evidence, ...]:
    """What it answers, why it does not, or nothing where no rank listens or the first rank is elsewhere.

    Args:
        ranks: those of the job on this machine.
        within_s: how long it may take, seconds.
        folder: for the file that says when it was asked; None: that for temporary files.
        command: what the child of the reader runs.
    """
    first = next((rank for rank in ranks if rank.rank == _FIRST_RANK), None)
    port = _port(first) if first is not None else None
    if first is None or port is None or not any(listeners(port)):
        return ()
    request = RasRequest(
        port=port,
        processes=tuple((rank.pid, rank.started_ticks) for rank in ranks),
        within_s=within_s - _START_S,
        stamp=_stamp(folder),
    )
    origin = f"127.0.0.1:{port}"
    with Reader(deadline_s=within_s, command=command) as reader:
        reply = reader.ask([Task(request=request, path=origin)], within_s=within_s).get(origin)
    seen = _observe(reply, origin)
    if seen is None:
        return ()
    source, host = CollectorName.RAS, first.host
    return (Evidence(source=source, rank=None, host=host, observed_at=now_rfc3339(), observation=seen, origin=origin),)


def _observe(reply: Reply | None, origin: str) -> Observation | None:
    if isinstance(reply, RasRead):
        if reply.is_too_soon:
            return Absence(reason=AbsenceReason.SKIPPED, detail=f"NCCL's RAS was asked less than {LEAST_PAUSE_S:.0f} s ago")
        return reply.seen
    if isinstance(reply, FileRead) and reply.problem is not None:
        return Absence(reason=reply.problem.reason, detail=f"NCCL's RAS at {origin}: {reply.problem.detail}")
    return None


def _port(rank: RankProcess) -> int | None:
    """Where RAS listens by the environment of a rank; None if that is no port of this machine alone."""
    place = rank.recorder.get(PLACE_NAME)
    if place is None:
        return PORT
    found = _OWN_PLACE.fullmatch(place)
    return int(found[1]) if found is not None and 0 < int(found[1]) < 65536 else None


def _stamp(folder: str | None) -> str:
    return os.path.join(folder or tempfile.gettempdir(), f"pardbg-ras-{os.geteuid()}")  # noqa: PTH118 - a text for the child
