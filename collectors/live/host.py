"""Looks at the processes of ranks: `/proc` only; they are neither stopped nor woken and notice nothing.

Cost: one child process (`asking.py`) and about 2 ms a rank. Deadline: `asking.DEADLINE_S` a rank. Privilege: root, or the job's
own user for everything; anybody else gets states, switches and processor time, and an absence that says what is missing.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from pardbg.collectors.live.asking import DEADLINE_S, Asker
from pardbg.collectors.live.asking_protocol import Answer, Denied, Gone, Looked, LookRequest
from pardbg.collectors.live.moment import now_rfc3339
from pardbg.watchdog.model.evidence import Absence, Evidence, Observation
from pardbg.watchdog.model.names import AbsenceReason, CollectorName
from pardbg.watchdog.model.world import RankProcess

_HIDDEN = "/proc hides this process from us (hidepid): run as root, or as the job's user"
_PARTLY_DENIED = "its system call, open files and bytes moved are for root and its own user only: run as one of them"
_ENDED = "the process has ended, or its number belongs to another one now"


def look_at_processes(
    ranks: Sequence[RankProcess], sample: int, *, store: str = "", deadline_s: float = DEADLINE_S
) -> list[Evidence]:
    """One `ProcessSample` a rank, or the absence that says why there is none; both where part of it was denied.

    Args:
        ranks: the processes.
        sample: number of this look.
        store: ``address:port`` of the job's store, by which a connection to it is recognised; empty if unknown.
        deadline_s: after which we stop waiting for one process.
    """
    port = store.rpartition(":")[2]
    store_port = int(port) if port.isdecimal() else None
    evidence: list[Evidence] = []
    with Asker(deadline_s=deadline_s) as asker:
        for rank in ranks:
            answer = asker.ask(LookRequest(pid=rank.pid, started_ticks=rank.started_ticks, store_port=store_port))
            observed_at = now_rfc3339()
            evidence += [
                Evidence(
                    source=CollectorName.HOST,
                    rank=rank.rank,
                    host=rank.host,
                    observed_at=observed_at,
                    observation=observation,
                    origin=f"/proc/{rank.pid}",
                )
                for observation in _observations(answer, sample, deadline_s)
            ]
    return evidence


def _observations(answer: Answer | None, sample: int, deadline_s: float) -> list[Observation]:
    if isinstance(answer, Looked):
        seen = replace(answer.sample, sample=sample)
        return [seen, Absence(reason=AbsenceReason.DENIED, detail=_PARTLY_DENIED)] if answer.is_partial else [seen]
    if isinstance(answer, Gone):
        return [Absence(reason=AbsenceReason.GONE, detail=_ENDED)]
    if isinstance(answer, Denied):
        return [Absence(reason=AbsenceReason.DENIED, detail=_HIDDEN)]
    detail = f"/proc gave no answer within {deadline_s:g} s: the process holds a lock in the kernel"
    return [Absence(reason=AbsenceReason.TIMED_OUT, detail=detail)]
