"""The judge: evidence in, the report out. Reads no clock and no file: what time it is, the caller says."""

from collections.abc import Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from pardbg import __version__
from pardbg.watchdog.correlators.all import CORRELATORS, CORRELATORS_OF_ALL
from pardbg.watchdog.correlators.by_ras import ras_lines
from pardbg.watchdog.correlators.cascade import find_consequences
from pardbg.watchdog.correlators.device_words import device_line, peers_line
from pardbg.watchdog.correlators.fates import KILLED_CODES, exit_code_of
from pardbg.watchdog.correlators.kernel_words import kernel_lines
from pardbg.watchdog.correlators.log_words import log_lines
from pardbg.watchdog.correlators.logged_ways import way_notes
from pardbg.watchdog.correlators.routing import first_steps
from pardbg.watchdog.correlators.routing_notes import routing_notes, why_unsure
from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.correlators.wording import heartbeat_line, name_group, name_ranks, stack_line
from pardbg.watchdog.graph.axes import find_layout
from pardbg.watchdog.graph.motion import is_astir
from pardbg.watchdog.graph.standing import Stance
from pardbg.watchdog.judge.log_endings import FINISHED, doubt_of_logs, tells_by_logs_alone, tells_of_an_end, unread_errors
from pardbg.watchdog.judge.old_pictures import doubt_of_moments, old_pictures
from pardbg.watchdog.judge.patience import Haste, find_haste
from pardbg.watchdog.judge.precedence import clear_of_blame, clear_victims, rank_findings
from pardbg.watchdog.model.evidence import Absence, SchedulerEnding, SoftwareSeen, Stack
from pardbg.watchdog.model.garbage import without_garbage_collection
from pardbg.watchdog.model.names import ILLNESSES, AbsenceReason, CollectorName, Confidence, JobSource, Kind, Status
from pardbg.watchdog.model.reach import NO_WAY, Reach
from pardbg.watchdog.model.report import Coverage, EvidenceLine, Finding, Job, Report, Software, Unknown
from pardbg.watchdog.model.routing import RoutingSeries
from pardbg.watchdog.positions.rules import CauseRule
from pardbg.watchdog.store.seen_ranks import told_world_size
from pardbg.watchdog.store.view import EvidenceView

RAS_IS_WELL = "NCCL's RAS tells nothing amiss of any rank, and it does not say whether operations finish"
RAS_DIFFERS = (
    "by NCCL's RAS members of one communicator have launched different numbers of operations: {counts}; in a job that moves "
    "this passes: ask RAS again after 30 s"
)
KILLED_FROM_OUTSIDE = (
    "every process was killed by SIGKILL, which comes from outside, so that none of them went first: the kernel log of the "
    "host (dmesg -T) tells whether it was for memory; the scheduler or a person may have done it, too"
)
_WAITED_FOR = frozenset({Kind.MISSING_PARTICIPANT, Kind.INIT_STUCK})
_NO_WAIT = ({CollectorName.RAS}, {CollectorName.KERNEL_LOG})  # what RAS tells alone may pass; a kernel knows of no job
MAX_STACKS = 8  # lines of evidence for the ranks a finding names; the files have all


@dataclass(frozen=True)
class Circumstances:
    """What the evidence itself does not say: when the judging was done, how long the whole took, and by which table of causes.

    ``is_void``: why nothing can be said at all, e.g. since the job is restarting; empty if something can. ``reach``: how the
    reader gets to the hosts.
    """

    decided_at: str
    took_s: float = 0.0
    source: JobSource = JobSource.FILES
    sampled_at: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    rules: tuple[CauseRule, ...] | None = None
    is_void: str = ""
    reach: Reach = NO_WAY


@without_garbage_collection()
def judge(view: EvidenceView, circumstances: Circumstances) -> Report:
    """Decides. The same evidence gives the same report, in whatever order it was read."""
    return judge_situation(Situation.of(view, circumstances.rules, circumstances.reach), circumstances)


@without_garbage_collection()
def judge_situation(situation: Situation, circumstances: Circumstances) -> Report:
    """The same of evidence from which all has been derived, with the rules and the reach of the circumstances."""
    view, motion = situation.view, situation.motion
    findings, set_aside = ((), ()) if circumstances.is_void else _find(situation)
    haste = find_haste(situation, findings[0]) if findings else None
    if haste:
        findings, set_aside = (), ()
    blaming = [finding for finding in findings if finding.kind not in ILLNESSES]  # who is ill may be the victim of a hang
    blamed = frozenset(subject.rank for finding in blaming for subject in finding.culprits if subject.rank is not None)
    findings = tuple(clear_victims(_with_stacks(situation, finding), blamed) for finding in findings)
    verdict = findings[0] if findings else None
    set_aside = tuple(clear_of_blame(finding, blamed) for finding in set_aside)
    if verdict is not None and verdict.kind not in ILLNESSES:
        set_aside += find_consequences(situation, verdict, blamed)
    unknowns = (*_unknowns(view), *old_pictures(situation), *_unsaid(situation, verdict))
    unknowns += unread_errors(view) if verdict is None else ()
    status, note = (Status.UNDETERMINED, haste.why) if haste else _status(situation, verdict, motion)
    routing = () if haste or circumstances.is_void else routing_notes(situation)
    if circumstances.is_void:
        status, note = Status.UNDETERMINED, circumstances.is_void
    return Report(
        pardbg_version=__version__,
        job=Job(
            id=view.job.job,
            source=circumstances.source,
            world=view.job.world,
            world_size=told_world_size(view),
            attempt=view.job.attempt,
        ),
        status=status,
        verdict=verdict,
        findings=findings,
        set_aside=set_aside,
        unknowns=unknowns,
        coverage=_coverage(view),
        layout=find_layout(situation.groups),
        software=_software(view),
        decided_at=circumstances.decided_at,
        sampled_at=circumstances.sampled_at or ((view.job.sampled_at,) if view.job.sampled_at else ()),
        took_s=circumstances.took_s,
        notes=(*circumstances.notes, *((note,) if note else ()), *routing, *way_notes(situation)),
    )


def haste_of(situation: Situation) -> Haste | None:
    """Whether there is a verdict that comes too early."""
    findings, _ = _find(situation)
    return find_haste(situation, findings[0]) if findings else None


def _find(situation: Situation) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """The findings, the verdict first, and those that are consequences of another; where the job moves nobody is accused."""
    chosen = CORRELATORS_OF_ALL if situation.motion else (*CORRELATORS, *CORRELATORS_OF_ALL)
    found = (finding for correlate in chosen for finding in correlate(situation))
    return rank_findings((_cap(situation.view, finding) for finding in found), first_steps(situation))


def _with_stacks(situation: Situation, finding: Finding) -> Finding:
    """Adds where those it names stand by their own stacks, unless it says so already, and what their own probes say."""
    named = [subject.rank for subject in (*finding.culprits, *finding.candidates) if subject.rank is not None]
    told = {line.rank for line in finding.evidence if line.source is CollectorName.STACKS}
    silent = [rank for rank in named if rank not in told and situation.standings[rank].position is not None]
    lines = tuple(line for rank in silent[:MAX_STACKS] if (line := stack_line(situation, rank)) not in finding.evidence)
    beats = filter(None, (heartbeat_line(situation, rank) for rank in named[:MAX_STACKS]))
    more = (line for rank in named[:MAX_STACKS] for line in (*kernel_lines(situation, rank), *ras_lines(situation, rank)))
    logged = (line for line in more if line not in finding.evidence)
    said = (line for rank in named[:MAX_STACKS] for line in log_lines(situation, rank) if line not in finding.evidence)
    return replace(finding, evidence=(*finding.evidence, *lines, *beats, *_devices(situation, finding), *logged, *said))


def _devices(situation: Situation, finding: Finding) -> Iterator[EvidenceLine]:
    """What the GPUs of those do that it names, and those of all who wait for them."""
    if not situation.view.devices:
        return
    subjects = (*finding.culprits, *finding.candidates, *finding.waiting_for)
    named = [subject.rank for subject in subjects if subject.rank is not None]
    lines = [device_line(situation, rank) for rank in named[:MAX_STACKS]]
    lines.append(peers_line(situation, [rank for rank in finding.victims if rank not in named]))
    yield from (line for line in lines if line is not None and line not in finding.evidence)


def _cap(view: EvidenceView, finding: Finding) -> Finding:
    """Where recorders are off, nothing tells in which operation by number the others wait: nothing is beyond doubt.

    Nor is a hang where recorders were seen once only, in files: stacks may lie any time apart from them (contract, rule 5).
    """
    reasons = {item.observation.reason for item in view.absences if isinstance(item.observation, Absence)}
    is_off = AbsenceReason.SWITCHED_OFF in reasons
    is_seen_once = finding.kind in _WAITED_FOR and not view.looks and all(len(found) == 1 for found in view.samples.values())
    is_weak = is_seen_once if view.recordings else is_off
    if finding.confidence is Confidence.ESTABLISHED and is_weak:
        return replace(finding, confidence=Confidence.SUPPORTED)
    return finding


def _status(situation: Situation, verdict: Finding | None, motion: str) -> tuple[Status, str]:
    item = situation.view.scheduler_ending
    if item is not None and isinstance(item.observation, SchedulerEnding):
        ending = item.observation
        told = "" if verdict is not None and verdict.claim == ending.claim else ending.claim
        if situation.view.looks and not situation.is_over:  # a part of the job has ended, and the others live on
            return _status_of(situation, verdict) if verdict is not None else Status.UNDETERMINED, told
        has_failed = ending.is_from_outside or ending.cause is not None or verdict is not None
        return Status.FAILED if has_failed else _status_at_the_end(situation)[0], told
    if verdict is None:
        return _status_without_verdict(situation, motion)
    doubt = doubt_of_moments(situation, verdict)
    if doubt or verdict.kind not in {Kind.CONFIG_MISMATCH, *ILLNESSES}:
        return Status.UNDETERMINED if doubt else _status_of(situation, verdict), doubt
    status, note = _status_without_verdict(situation, motion)
    if verdict.kind in ILLNESSES:  # certain, whatever was not seen of the rest
        return (status if status is Status.FAILED else Status.DEGRADED), note
    return (Status.DEGRADED if status is Status.HEALTHY else status), note


def _status_without_verdict(situation: Situation, motion: str) -> tuple[Status, str]:
    view = situation.view
    if motion:
        return Status.HEALTHY, f"{motion}: the job moves"
    if situation.waiting_ranks:
        return Status.UNDETERMINED, "ranks wait, and nothing that was seen says for whom"
    if situation.is_over:
        return _status_at_the_end(situation)
    if view.is_of_routing_alone:
        return (Status.UNDETERMINED if why_unsure(situation) else Status.HEALTHY), ""
    if view.is_of_traces_alone:
        return Status.HEALTHY, "no rank, host or stage makes the others wait in the steps that were traced"
    by_logs = tells_by_logs_alone(situation)
    doubt, well = (doubt_of_logs(situation), FINISHED) if by_logs else (_doubt(situation), _well(view))
    return (Status.UNDETERMINED, doubt) if doubt else (Status.HEALTHY, well)


def _well(view: EvidenceView) -> str:
    return "no rank waits for another" if view.looks else "nothing was outstanding on any rank when it was dumped"


def _status_of(situation: Situation, verdict: Finding) -> Status:
    if verdict.kind in {Kind.SLOW_PHASE, Kind.STRAGGLER}:
        return Status.SLOW
    if verdict.kind is Kind.INSUFFICIENT_EVIDENCE and {line.source for line in verdict.evidence} in _NO_WAIT:
        return Status.UNDETERMINED
    if not situation.is_over and not tells_of_an_end(situation, verdict):
        return Status.HUNG
    return Status.UNDETERMINED if verdict.kind is Kind.INSUFFICIENT_EVIDENCE else Status.FAILED


def _status_at_the_end(situation: Situation) -> tuple[Status, str]:
    codes = {exit_code_of(situation, rank) for rank in situation.view.ended_ranks}
    if codes and codes <= KILLED_CODES:
        return Status.FAILED, KILLED_FROM_OUTSIDE
    if codes - {0, None}:
        return Status.FAILED, "every process has ended, not all with exit code 0, and nothing that was seen says why"
    if None in codes:
        return Status.UNDETERMINED, "every process has ended, and nothing that was seen says how"
    elsewhere = len(situation.standings) - len(situation.view.ended_ranks)
    unseen = f"; {elsewhere} {'rank was' if elsewhere == 1 else 'ranks were'} not seen" if elsewhere else ""
    return Status.HEALTHY, f"the job has ended; every rank{' here' if elsewhere else ''} returned with code 0{unseen}"


def _doubt(situation: Situation) -> str:
    """Why nobody waiting does not mean that all is well; empty if it does."""
    view = situation.view
    unseen = [rank for rank in situation.standings if not situation.is_seen(rank)]
    if view.looks and not unseen and not is_astir(view):
        return "no rank waits for another, and none has done anything between the samples: all may be stuck in one place"
    if view.looks:
        return f"nobody waits as far as was seen; {name_ranks(unseen)} could not be looked into" if unseen else ""
    if not view.recordings:
        return _doubt_by_ras(view) if view.ras.answers else "the flight recorder of no rank could be read"
    if len(view.recordings) != view.world_size or any(recording.damage for recording in view.recordings.values()):
        return "nothing is outstanding on the ranks that were seen; the others may tell another story"
    if any(standing.stance is Stance.HIDDEN and not standing.positions for standing in situation.standings.values()):
        return "this job uses send and recv on gloo, which its recorder does not show: stacks would tell"
    return doubt_of_moments(situation, None)


def _doubt_by_ras(view: EvidenceView) -> str:
    """One answer of RAS shows who has launched how much, and counts of a job that moves differ, too."""
    different = view.ras.differences
    return RAS_DIFFERS.format(counts="; ".join(different[:4])) if different else RAS_IS_WELL


def _unknowns(view: EvidenceView) -> tuple[Unknown, ...]:
    return tuple(
        Unknown(
            rank=item.rank,
            host=item.host or (view.host(item.rank) if item.rank is not None else None),
            collector=item.source,
            reason=item.observation.reason,
            detail=item.observation.detail,
        )
        for item in view.absences
        if isinstance(item.observation, Absence)
    )


def _unsaid(situation: Situation, verdict: Finding | None) -> tuple[Unknown, ...]:
    """What recorders that were read do not say, where the answer hangs on it."""
    if verdict is None or verdict.kind is not Kind.INSUFFICIENT_EVIDENCE:
        return ()
    named = {subject.rank for subject in verdict.candidates}
    details: list[tuple[int | None, str]] = [
        (rank, "uses send and recv on gloo, which its recorder does not show")
        for rank, recording in situation.view.recordings.items()
        if rank in named and recording.unrecorded_p2p
    ]
    waited_in = {key.group for key in situation.graph.meetings if key.group >= 0}
    unnamed = [group for group in sorted(waited_in) if not situation.progress.is_whole(group)]
    details += [(None, f"who belongs to {name_group(situation.groups.groups[group])} is not recorded") for group in unnamed]
    is_explained = any(item.rank in named for item in situation.view.absences)
    unsaid = "the evidence does not name whom the ranks wait for" if situation.standings else "no rank's recorder was read"
    details = details or ([] if is_explained else [(None, unsaid)])
    return tuple(
        Unknown(rank=rank, host=None, collector=CollectorName.FLIGHT_RECORDER, reason=AbsenceReason.UNSUPPORTED, detail=detail)
        for rank, detail in details
    )


def _coverage(view: EvidenceView) -> Coverage:
    seen: dict[CollectorName, set[int]] = {}
    for item in view.evidence:
        if isinstance(item.observation, RoutingSeries):
            seen.setdefault(item.source, set())  # counts of the whole job are of no rank
        if item.rank is None or isinstance(item.observation, Absence):
            continue
        if item.source is CollectorName.FLIGHT_RECORDER and item.rank not in view.recordings:
            continue
        if isinstance(item.observation, Stack) and not item.observation.threads:
            continue
        seen.setdefault(item.source, set()).add(item.rank)
    if view.processes:
        seen.setdefault(CollectorName.HOST, set()).update(
            rank for rank, process in view.processes.items() if process.state or process.exit_code is not None
        )
    if view.traces.ranks:
        seen.setdefault(CollectorName.GPU, set()).update(view.traces.ranks)
    ranks_seen = len(set().union(*seen.values()))
    logged = {rank.rank for rank in view.kernel.ranks if rank.host in view.kernel.hosts}
    seen.setdefault(CollectorName.KERNEL_LOG, set()).update(logged)
    return Coverage(
        ranks_expected=told_world_size(view),
        ranks_seen=ranks_seen,
        by_collector={name.value: len(ranks) for name, ranks in sorted(seen.items()) if ranks or name is CollectorName.ROUTING},
    )


def _software(view: EvidenceView) -> tuple[Software, ...]:
    """The hosts by what they run."""
    hosts: dict[SoftwareSeen, set[str]] = {}
    for rank, seen in view.software.items():
        host = view.host(rank)
        hosts.setdefault(seen, set()).update([host] if host else [])
    return tuple(
        Software(hosts=tuple(sorted(names)), torch=seen.torch, nccl=seen.nccl, driver=seen.driver, python=seen.python)
        for seen, names in sorted(hosts.items(), key=lambda entry: repr(entry[0]))
    )
