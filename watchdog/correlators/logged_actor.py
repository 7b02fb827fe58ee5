"""An actor of Ray that died, as the process that waited for it says: how, and which rank it was, is not told.

Several may die of one, so that the actor named is not known to be the first.
"""

from collections.abc import Iterable

from pardbg.watchdog.correlators import dead_rank
from pardbg.watchdog.correlators.log_words import MAX_LINES, are_logs_alone, log_line
from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.model.log_event import ActorDied
from pardbg.watchdog.model.names import Confidence, Kind
from pardbg.watchdog.model.report import Finding, Subject

MAX_TOLD = 4
_READ_ITS_LOG = (
    "Read that worker's own log (ray logs worker-*-PID.err), and look for `Out of memory` in the kernel log of its host."
)


def correlate(situation: Situation) -> Iterable[Finding]:
    """At most one finding, where no log tells of an error that is clearly a rank's own."""
    told = situation.logs.of_type(ActorDied)
    if not told or not are_logs_alone(situation) or situation.own_failures or any(dead_rank.correlate(situation)):
        return
    hosts = dict.fromkeys(event.host for _, event in told if event.host)
    names = "; ".join(dict.fromkeys(_name(event) for _, event in told[:MAX_TOLD]))
    yield Finding(
        kind=Kind.INSUFFICIENT_EVIDENCE,
        confidence=Confidence.SUGGESTED,
        candidates=tuple(Subject.of_host(host, "Ray says that an actor died there") for host in hosts),
        claim=f"Ray says that {names} died unexpectedly; how, and which rank it was, is not told",
        evidence=tuple(log_line(fact) for fact, _ in told[:MAX_LINES]),
        advice=(_READ_ITS_LOG,),
    )


def _name(event: ActorDied) -> str:
    where = f" on {event.host}" if event.host else ""
    return f"the actor {event.actor or 'of a task'}{f' (pid {event.pid})' if event.pid else ''}{where}"
