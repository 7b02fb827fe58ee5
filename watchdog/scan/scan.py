"""Scans a running job: two samples, what explains them, one report. Where the job runs is the `Site`'s business.

What it does to the job is told in `local_site.py`. At most two ranks are stopped for native stacks, where Python's own do not
explain; ranks of a job that hangs are attached to, where nothing else gives access to their recorders.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from msgspec.structs import replace as change

from pardbg.collectors.jobs.query import ChosenJob
from pardbg.collectors.live.moment import now_rfc3339
from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.correlators.straggler import stragglers_without_reason
from pardbg.watchdog.correlators.wording import count_ranks, name_ranks
from pardbg.watchdog.errors import InputError
from pardbg.watchdog.graph.motion import is_astir
from pardbg.watchdog.judge.judge import Circumstances, haste_of, judge_situation
from pardbg.watchdog.model.evidence import Absence, Evidence
from pardbg.watchdog.model.names import AbsenceReason, CollectorName
from pardbg.watchdog.model.report import Report
from pardbg.watchdog.positions.rules import CauseRule
from pardbg.watchdog.scan.attaching import Policy, ranks_to_attach_to
from pardbg.watchdog.scan.curiosity import ranks_that_need_native
from pardbg.watchdog.scan.description import absent_elsewhere, describe_world
from pardbg.watchdog.scan.entries import add_entries, choose_entries
from pardbg.watchdog.scan.interval import LONGEST_S, MARGIN_S, choose_interval
from pardbg.watchdog.scan.sample import InterruptedSampleError, Sample
from pardbg.watchdog.scan.site import Site
from pardbg.watchdog.store.view import EvidenceView

SIGN_S = 2.0
MOST_LOOKS = 4
"""At ranks that come late, besides the two samples."""
LOOK_S = 5.0
"""Less is not enough for another look at all ranks."""

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Settings:
    """How to scan. ``interval_s`` None: adapted to the job. ``rules``: the table of causes, None for the shipped one.

    ``began_s`` is when the command began, on the monotonic clock; None: when the scan begins. ``policy`` says whether to attach
    to ranks, ``is_kept`` whether torch's worker server stays in them afterwards.
    """

    timeout_s: float = 60.0
    began_s: float | None = None
    interval_s: float | None = None
    rules: tuple[CauseRule, ...] | None = None
    policy: Policy = Policy.AUTO
    is_kept: bool = False


@dataclass(frozen=True)
class Scanned:
    """A scan's answer and what it rests on. ``is_interrupted``: Ctrl-C came before all had been seen."""

    report: Report
    evidence: tuple[Evidence, ...]
    is_interrupted: bool = False

    def with_notes(self, notes: tuple[str, ...]) -> "Scanned":
        """The same with more notes."""
        return replace(self, report=change(self.report, notes=(*self.report.notes, *notes)))


@dataclass
class _SoFar:
    """What is known so far. ``more`` is what was gathered after the samples."""

    site: Site
    job: ChosenJob
    until_s: float
    samples: list[Sample] = field(default_factory=list)
    more: list[Evidence] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    is_void: str = ""
    is_interrupted: bool = False
    derived: tuple[tuple[Sample, ...], int, Situation] | None = None

    def take(self, number: int) -> None:
        """Takes a sample, in place of the one of that number if there is one. Of an interrupted one a part."""
        try:
            self.samples[number:] = [self.site.sample(number, self.until_s)]
        except InterruptedSampleError as interrupted:
            self.samples[number:] = self.samples[number:] or [interrupted.sample]
            raise

    @property
    def seen(self) -> tuple[Evidence, ...]:
        """What the samples gave."""
        return tuple(item for sample in self.samples for item in sample.evidence)

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """All evidence, with the description of the job."""
        world = self.job.world
        taken_at = self.samples[-1].taken_at if self.samples else now_rfc3339()
        description = describe_world(world, self.job.job_id, self.seen, taken_at)
        unfound = absent_elsewhere(world, self.site.where, self.site.silent)
        return (description, *world.evidence, *unfound, *self.seen, *self.more)

    def situation(self, settings: Settings) -> Situation:
        """What follows from the evidence; in a job of many ranks that takes seconds, so it is kept until there is more."""
        known = self.derived
        if known is None or known[1] != len(self.more) or list(map(id, known[0])) != list(map(id, self.samples)):
            situation = Situation.of(EvidenceView.of(self.evidence), settings.rules, self.site.reach)
            known = self.derived = tuple(self.samples), len(self.more), situation
        return known[2]

    @property
    def has_changed(self) -> bool:
        """Whether a process is no longer the one that was found."""
        return any(sample.lost_ranks for sample in self.samples)


def scan(site: Site, settings: Settings, progress: Progress) -> Scanned:
    """Scans the job of a site; it is found again if processes change while they are looked at.

    Raises:
        InputError: if there is no such job, or several.
    """
    began_s = time.monotonic() if settings.began_s is None else settings.began_s
    progress("looking for the job's processes")
    so_far = _SoFar(site, site.find(), began_s + settings.timeout_s)
    try:
        _sample_twice(so_far, settings, progress)
        if so_far.has_changed:
            progress("its processes have changed: looking again")
            _look_again(so_far, settings, progress)
        _attach(so_far, settings, progress)
        _ask_for_entries(so_far, settings, progress)
        _look_at_stragglers(so_far, settings, progress)
        _explain(so_far, settings, progress)
    except KeyboardInterrupt:
        so_far.is_interrupted = True
        so_far.notes.append("interrupted before everything had been seen")
    return _conclude(so_far, settings, time.monotonic() - began_s)


def _sample_twice(so_far: _SoFar, settings: Settings, progress: Progress) -> None:
    progress(f"looking at {count_ranks(so_far.job.world.ranks)}")
    so_far.take(0)
    interval_s = settings.interval_s
    if interval_s is None:
        interval_s = choose_interval(so_far.situation(settings))
    spent_s = time.monotonic() - so_far.samples[0].taken_at_s
    wait_s = min(interval_s - spent_s, so_far.until_s - time.monotonic() - spent_s)
    progress(f"looking again in {max(wait_s, 0.0):.1f} s")
    time.sleep(max(wait_s, 0.0))
    so_far.take(1)
    if settings.interval_s is None:
        _look_on(so_far, settings, min(so_far.until_s, so_far.samples[0].taken_at_s + LONGEST_S), progress)


def _look_on(so_far: _SoFar, settings: Settings, until_s: float, progress: Progress) -> None:
    """Takes the second sample anew while the answer would be "too early", and there is time."""
    while not so_far.has_changed:
        wait_s, why = _too_early(so_far, settings)
        if not why:
            return
        if time.monotonic() + wait_s > until_s:
            if until_s >= so_far.until_s:
                so_far.notes.append(f"--timeout {settings.timeout_s:g} left no time to look on")
            return
        progress(f"{why}: looking on")
        time.sleep(wait_s)
        so_far.take(1)


def _too_early(so_far: _SoFar, settings: Settings) -> tuple[float, str]:
    """In how many seconds to look again, and why; the reason is empty if all there is to see has been seen.

    A wait may be younger than it seemed in the first sample; and healthy jobs may pause for a whole step.
    """
    situation = so_far.situation(settings)
    if situation.waiting_ranks or so_far.job.world.ended or is_astir(situation.view):
        haste = haste_of(situation)
        if haste is None or haste.missing_s is None:
            return 0.0, ""
        return haste.missing_s + MARGIN_S, "the ranks have not waited for long enough to say that they hang"
    return SIGN_S, "no rank waits, and none has done anything yet"


def _look_again(so_far: _SoFar, settings: Settings, progress: Progress) -> None:
    """Samples the job as it is now, once more."""
    try:
        so_far.job = so_far.site.find()
    except InputError:
        so_far.is_void = "the job ended, or is between two attempts: no rank of it is left"
        return
    so_far.samples = []
    _sample_twice(so_far, settings, progress)
    if so_far.has_changed:
        so_far.is_void = "restarting: its processes changed while they were looked at, twice"


def _attach(so_far: _SoFar, settings: Settings, progress: Progress) -> None:
    """Recorders that nothing else gives access to, in place of their absences."""
    if so_far.is_void:
        return
    situation = so_far.situation(settings)
    if settings.policy is Policy.NEVER:
        _leave_alone(so_far, ranks_to_attach_to(situation, Policy.AUTO))
        return
    wanted = ranks_to_attach_to(situation, settings.policy)
    if not wanted:
        return
    progress(f"attaching to {count_ranks(wanted)} for their recorders")
    number = len(so_far.samples) - 1
    attached = so_far.site.attach(wanted, number, so_far.until_s, is_kept=settings.is_kept)
    reached = {item.rank for item in attached.evidence}
    so_far.samples = [sample.without_recorders(reached) for sample in so_far.samples]
    so_far.samples[number] = so_far.samples[number].with_more(attached.evidence)
    if settings.is_kept:
        told = f"torch's worker server stays in {attached.kept_count} of {len(wanted)} ranks, as --keep-attached asks for"
        so_far.notes.append(told)


def _leave_alone(so_far: _SoFar, ranks: Sequence[int]) -> None:
    """Says of recorders that attaching would have reached that nobody tried to."""
    if ranks:
        so_far.notes.append(f"the recorders of {count_ranks(ranks)} were left alone: --attach never")
        so_far.samples = [sample.with_recorders_left(ranks, "it was left alone: --attach never") for sample in so_far.samples]


def _ask_for_entries(so_far: _SoFar, settings: Settings, progress: Progress) -> None:
    """What the digests of the last sample leave out, where it matters."""
    if so_far.is_void:
        return
    question = choose_entries(so_far.situation(settings))
    if question.wanted:
        progress(f"asking for {len(question.wanted)} parts of recorders")
        number = len(so_far.samples) - 1
        cuts = so_far.site.entries(question.wanted, so_far.until_s)
        last = so_far.samples[number]
        so_far.samples[number] = replace(last, evidence=add_entries(last.evidence, question, cuts, number))


def _look_at_stragglers(so_far: _SoFar, settings: Settings, progress: Progress) -> None:
    """Looks again a few times where ranks come late to collectives, to see them at what keeps them."""
    for _ in range(MOST_LOOKS):
        if so_far.is_void or so_far.has_changed or so_far.until_s - time.monotonic() < LOOK_S:
            return
        unseen = stragglers_without_reason(so_far.situation(settings))
        if not unseen:
            return
        progress(f"looking at {name_ranks(unseen)} again: others wait for it, it is not seen by what")
        so_far.take(len(so_far.samples))


def _explain(so_far: _SoFar, settings: Settings, progress: Progress) -> None:
    """Logs, and native stacks of those whose Python stacks do not explain."""
    progress("reading logs")
    is_stuck = so_far.situation(settings).is_stuck  # asked before there is more: each time it is derived anew
    so_far.more += so_far.site.software(so_far.until_s)
    so_far.more += so_far.site.logs(so_far.until_s)
    if not is_stuck:  # a hang does not wait for it
        so_far.more += so_far.site.routing()
    if any(sample.refused_ranks for sample in so_far.samples):  # then native ones would be refused, too
        wanted_ranks = {item.rank for item in so_far.seen if item.rank is not None and _is_stack_absence(item)}
        so_far.more += so_far.site.fault_stacks(wanted_ranks, so_far.until_s)
        return
    wanted = ranks_that_need_native(so_far.situation(settings))
    if wanted:
        progress(f"taking native stacks of {count_ranks(wanted)}")
        so_far.more += so_far.site.native_stacks(wanted, len(so_far.samples) - 1, so_far.until_s)


def _is_stack_absence(item: Evidence) -> bool:
    """Whether a rank's own stack was refused, and asking the rank itself gave none either."""
    seen = item.observation
    is_refused = isinstance(seen, Absence) and seen.reason in {AbsenceReason.DENIED, AbsenceReason.UNSUPPORTED}
    return item.source is CollectorName.STACKS and is_refused


def _conclude(so_far: _SoFar, settings: Settings, took_s: float) -> Scanned:
    circumstances = Circumstances(
        decided_at=now_rfc3339(),
        took_s=round(took_s, 3),
        source=so_far.job.source,
        sampled_at=tuple(sample.taken_at for sample in so_far.samples),
        notes=(*so_far.site.remarks, *so_far.notes),
        rules=settings.rules,
        is_void=so_far.is_void,
        reach=so_far.site.reach,
    )
    report = judge_situation(so_far.situation(settings), circumstances)
    return Scanned(report, so_far.evidence, is_interrupted=so_far.is_interrupted)
