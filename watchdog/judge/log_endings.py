"""What follows from logs alone: a job whose logs tell of an end and of no wait has failed, and does not hang.

Nobody says that it is over, but nobody waits, either. And where no log tells of anything, that is all that is known.
"""

from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.model.evidence import Absence, JobDescription
from pardbg.watchdog.model.log_event import (
    CancelledByScheduler,
    LauncherFailure,
    LogSeen,
    LostSign,
    PeerLost,
    TrainingDone,
)
from pardbg.watchdog.model.names import AbsenceReason, CollectorName, Kind
from pardbg.watchdog.model.report import Finding, Unknown
from pardbg.watchdog.store.view import EvidenceView

MAX_QUOTED = 8  # lines that are not understood

NOTHING_LOGGED = (
    "nothing that was understood in the logs tells which rank failed, or of a wait; whether the job moves, dumps or stacks of "
    "all ranks would tell"
)
ENDED_FROM_OUTSIDE = (
    "the launcher was told to end (SIGTERM, Ctrl-C, or SIGHUP of a terminal that was closed), and the logs tell of no error "
    "before that: ask who ended the job"
)
CANCELLED = "Slurm cancelled the job or a step of it, and the logs tell of no error before that: ask who asked for it (scancel)"
REQUEUED = "Slurm ended the job to put it back into the queue, and the logs tell of no error before that: no rank is at fault"
FINISHED = "the logs say that the training was completed, and tell of no error that ended a rank"
_ENDS = frozenset({Kind.DEAD_RANK, Kind.INSUFFICIENT_EVIDENCE})


def tells_of_an_end(situation: Situation, verdict: Finding) -> bool:
    """Whether a verdict rests on logs alone, and nobody says in them that he waited for others or lost them."""
    view = situation.view
    is_of_logs = bool(verdict.evidence) and all(line.source is CollectorName.RANK_LOG for line in verdict.evidence)
    sees_more = view.recordings or view.looks or view.stacks or view.bereaved_ranks or situation.waiting_ranks
    waits = situation.logs.tells_of_waits or bool(situation.logs.of_type(PeerLost))
    return verdict.kind in _ENDS and is_of_logs and (_is_ended_by_launcher(situation, verdict) or not (sees_more or waits))


def _is_ended_by_launcher(situation: Situation, verdict: Finding) -> bool:
    """Whether a launcher tells of the very end that the verdict is about: it ends the others, too."""
    told = {fact.event.text for fact, event in situation.logs.of_type(LauncherFailure) if event.rank is None}
    return verdict.kind is Kind.DEAD_RANK and any(line.text in told for line in verdict.evidence)


def tells_by_logs_alone(situation: Situation) -> bool:
    """Whether logs are all that was brought, or all that speaks of the ranks: a kernel log may hold nothing of theirs."""
    view = situation.view
    sources = {item.source for item in view.evidence if not isinstance(item.observation, Absence | JobDescription)}
    is_kernel_mute = not (view.kernel.kills or view.kernel.child_kills or view.kernel.xids)
    return bool(view.logs) and sources <= ({CollectorName.RANK_LOG} | ({CollectorName.KERNEL_LOG} if is_kernel_mute else set()))


def doubt_of_logs(situation: Situation) -> str:
    """Why logs that tell of no fault do not mean that all is well; empty if they do."""
    if any(event.sign is LostSign.TERMINATED for _, event in situation.logs.of_type(PeerLost)):
        return ENDED_FROM_OUTSIDE
    cancelled = situation.logs.of_type(CancelledByScheduler)
    if cancelled:
        return REQUEUED if any(event.is_requeued for _, event in cancelled) else CANCELLED
    return "" if _says_finished(situation) else NOTHING_LOGGED


def unread_errors(view: EvidenceView) -> tuple[Unknown, ...]:
    """The last lines of logs that speak of an error, where no reader understands any."""
    return tuple(
        Unknown(
            rank=item.rank,
            host=item.host,
            collector=CollectorName.RANK_LOG,
            reason=AbsenceReason.UNSUPPORTED,
            detail=f"speaks of an error and is not understood: {line}",
        )
        for item in view.logs
        if isinstance(item.observation, LogSeen)
        for line in item.observation.last_errors
    )[-MAX_QUOTED:]


def _says_finished(situation: Situation) -> bool:
    """Whether every rank says that the training is over, or its launcher does; one rank may be over while others hang."""
    done = {fact.rank for fact, _ in situation.logs.of_type(TrainingDone)}
    return None in done or (bool(situation.standings) and done >= situation.standings.keys())
