"""The software of ranks as evidence: versions that they have mapped.

Cost: one child process of 100 ms, and a few ms a rank; ranks are read, not touched. Deadline: `WITHIN_S` for all of them. What
cannot be told is left out: it is no evidence of anything.
"""

import time
from collections.abc import Sequence

from pardbg.collectors.live.moment import now_rfc3339
from pardbg.collectors.node import own_children
from pardbg.collectors.node.answers import RankSoftware, RankTarget, SoftwareRequest
from pardbg.watchdog.model.evidence import Evidence, SoftwareSeen
from pardbg.watchdog.model.names import CollectorName
from pardbg.watchdog.model.world import RankProcess

WITHIN_S = 3.0


def look_at_software(ranks: Sequence[RankProcess], *, within_s: float = WITHIN_S) -> tuple[Evidence, ...]:
    """One `SoftwareSeen` for each rank that answers in time."""
    by_pid = {rank.pid: rank for rank in ranks}
    targets = tuple(RankTarget(pid=rank.pid, started_ticks=rank.started_ticks, is_at_home=rank.is_at_home) for rank in ranks)
    if not targets:
        return ()
    until_s = time.monotonic() + within_s
    try:
        with own_children.running_trier() as child:
            own_children.ask(child, SoftwareRequest(ranks=targets))
            answers = own_children.hear(child, until_s)
    except OSError:
        return ()
    return tuple(_evidence(by_pid[answer.pid], answer) for answer in answers if isinstance(answer, RankSoftware))


def _evidence(rank: RankProcess, seen: RankSoftware) -> Evidence:
    return Evidence(
        source=CollectorName.HOST,
        rank=rank.rank,
        host=rank.host,
        observed_at=now_rfc3339(),
        observation=SoftwareSeen(torch=seen.torch, nccl=seen.nccl, driver=seen.driver, python=seen.python),
        origin=f"/proc/{rank.pid}/maps",
    )
