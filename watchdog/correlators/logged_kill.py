"""The kernel killed a rank's process for memory, by its number, and nothing but ranks' logs shows what came of it.

How the process ended is not known otherwise: what described the job looked before it, or not at all. So the number alone does
not suffice: others must have lost a peer or waited in vain, and the rank itself must have said nothing of the kind, nor that
it was done.
"""

from collections.abc import Iterable

from pardbg.watchdog.correlators import dead_rank
from pardbg.watchdog.correlators.fates import is_killed_by_log
from pardbg.watchdog.correlators.kernel_words import kernel_lines
from pardbg.watchdog.correlators.log_words import MAX_LINES, are_logs_alone, log_line
from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.correlators.wording import count_ranks, name_ranks
from pardbg.watchdog.model.log_event import SECONDARY, TrainingDone
from pardbg.watchdog.model.names import Cause, Confidence, Kind
from pardbg.watchdog.model.report import Finding


def correlate(situation: Situation) -> Iterable[Finding]:
    """At most one finding: all ranks that were killed."""
    view, logs = situation.view, situation.logs
    if not view.kernel.kills or not are_logs_alone(situation) or situation.own_failures or any(dead_rank.correlate(situation)):
        return
    bereaved = logs.bereaved | view.bereaved_ranks
    done = {fact.rank for fact, _ in logs.of_type(TrainingDone)}
    unhurt = sorted(view.kernel.kills.keys() - bereaved - done - view.tracebacks.keys())
    killed = [rank for rank in unhurt if is_killed_by_log(situation, rank)]
    if killed and bereaved and None not in done:
        yield _describe(situation, killed, tuple(sorted(bereaved)))


def _describe(situation: Situation, killed: list[int], victims: tuple[int, ...]) -> Finding:
    was = "was" if len(killed) == 1 else "were"
    lines = situation.logs.first_lines(victims, SECONDARY)
    return Finding(
        kind=Kind.DEAD_RANK,
        cause=Cause.OOM_KILLED,
        confidence=Confidence.SUPPORTED,
        culprits=tuple(situation.subject(rank, "was killed for memory by the kernel") for rank in killed),
        victims=victims,
        claim=(
            f"{name_ranks(killed)} {was} killed for memory by the kernel; {count_ranks(victims)} lost a peer or waited in "
            "vain, by their logs"
        ),
        evidence=(
            *(line for rank in killed[:MAX_LINES] for line in kernel_lines(situation, rank)),
            *map(log_line, lines[:MAX_LINES]),
        ),
        advice=(dead_rank.SAVE_MEMORY,),
    )
