"""What becomes of one job: healthy, suspect, hung, recovered. Pure: signs of life and reports in, a state out.

A rank that is silent for too long in two looks makes a job suspect; only a scan's report makes it hung. A scan that finds
nothing wrong buys the job time, twice as much each time while the silence lasts, so that a job which is well costs little.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pardbg.collectors.vitals.signs import Signs
from pardbg.watchdog.agent.quiet import Limits, Quiet
from pardbg.watchdog.model.names import Kind, Status
from pardbg.watchdog.model.report import Report
from pardbg.watchdog.model.watched import JobState
from pardbg.watchdog.outputs.exit_code import ExitCode, exit_code

_CONFIRMATIONS = 2
_LIVELY_LOOKS = 3
"""So often must ranks that hung be seen alive before the job has recovered: a process that is ended stirs, too."""
_MOVES = frozenset({Status.HEALTHY, Status.SLOW, Status.DEGRADED})
_WHILE_STARTING = frozenset({Kind.INIT_STUCK})


@dataclass(frozen=True)
class Patience:
    """How long to wait before what, seconds.

    Attributes:
        first_calm_s: after a scan that found nothing wrong; doubled each time, up to ``longest_calm_s``.
        again_s: before the next scan of a job that hangs, to follow it.
        follow_s: before an agent that follows looks whether the one that leads is still there.
        start_s: how long a job may take to start before ranks that are not there yet are a fault.
        warning_s: for which the word of another agent counts.
        recovered_s: how long a job that goes on again is called so.
    """

    first_calm_s: float = 30.0
    longest_calm_s: float = 600.0
    again_s: float = 300.0
    follow_s: float = 10.0
    start_s: float = 180.0
    warning_s: float = 20.0
    recovered_s: float = 60.0


@dataclass
class Watch:
    """One world on this node. Times are of the monotonic clock, seconds."""

    began_at_s: float
    limits: Limits
    patience: Patience
    state: JobState = JobState.HEALTHY
    state_at_s: float = 0.0
    ranks: dict[int, Quiet] = field(default_factory=dict)
    _silent_looks: int = 0
    _lively_looks: int = 0
    _calm_s: float = 0.0
    _scan_from_s: float = 0.0
    _warned_until_s: float = float("-inf")
    _stuck: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        """The state holds from the beginning."""
        self.state_at_s = self.began_at_s

    def feed(self, signs: Mapping[int, Signs], now_s: float) -> None:
        """Takes in one look at the ranks that live here."""
        for rank, seen in signs.items():
            self.ranks.setdefault(rank, Quiet(now_s)).feed(seen, now_s)
        for rank in self.ranks.keys() - signs.keys():
            del self.ranks[rank]
        silent = self.silent
        self._silent_looks = self._silent_looks + 1 if silent else 0
        is_calm = not silent and now_s > self._warned_until_s
        if is_calm and self.state is not JobState.HUNG:
            self._scan_from_s = self._calm_s = 0.0
        if self.state in {JobState.HEALTHY, JobState.RECOVERED} and self._silent_looks >= _CONFIRMATIONS:
            if now_s >= self._scan_from_s:
                self._become(JobState.SUSPECT, now_s)
        elif self.state is JobState.SUSPECT and is_calm:
            self._become(JobState.HEALTHY, now_s)
        elif self.state is JobState.HUNG and self._is_lively(silent):
            self._become(JobState.RECOVERED, now_s)
        elif self.state is JobState.RECOVERED and now_s - self.state_at_s >= self.patience.recovered_s:
            self._become(JobState.HEALTHY, now_s)

    @property
    def silent(self) -> frozenset[int]:
        """The ranks that are silent for longer than they may."""
        return frozenset(rank for rank, quiet in self.ranks.items() if quiet.quiet_s > quiet.limit_s(self.limits))

    def warn(self, now_s: float) -> None:
        """An agent of other ranks of the job suspects it, and this one is to lead."""
        self._warned_until_s = now_s + self.patience.warning_s
        if self.state in {JobState.HEALTHY, JobState.RECOVERED} and now_s >= self._scan_from_s:
            self._become(JobState.SUSPECT, now_s)

    def wants_scan(self, now_s: float) -> bool:
        """Whether somebody should scan the job now."""
        return self.state in {JobState.SUSPECT, JobState.HUNG} and now_s >= self._scan_from_s

    def judge(self, report: Report, now_s: float) -> None:
        """Takes in what a scan has found."""
        if self.is_hang(report, now_s):
            self._hang(self.silent, self.patience.again_s, now_s)
            return
        self.put_off(now_s)
        if report.status in _MOVES and self.state is JobState.SUSPECT:
            self._become(JobState.HEALTHY, now_s)

    def put_off(self, now_s: float) -> None:
        """Nothing was found, or the scan failed: the next one comes later."""
        self._calm_s = min(max(2 * self._calm_s, self.patience.first_calm_s), self.patience.longest_calm_s)
        self._scan_from_s = now_s + self._calm_s

    def follow(self, now_s: float) -> None:
        """Another agent leads, and has found that the job hangs; soon it is time to see whether it still does."""
        self._hang(self.silent, self.patience.follow_s, now_s)

    def resume(self, now_s: float) -> None:
        """It was found to hang before this watch began; whether it still does, the next scan says."""
        self._hang(frozenset(), self.patience.follow_s, now_s)

    def is_hang(self, report: Report, now_s: float) -> bool:
        """Whether a report says that the job hangs, or has failed with processes left, and waiting longer is of no use."""
        is_fault = report.status in {Status.HUNG, Status.FAILED} and exit_code(report) == ExitCode.FAULT
        return is_fault and not self._is_starting(report, now_s)

    def _hang(self, stuck: frozenset[int], again_s: float, now_s: float) -> None:
        """The job hangs, and is looked at again so much later; if it is not known which ranks do, all have to move again."""
        self._stuck = stuck or frozenset(self.ranks)
        self._scan_from_s = now_s + again_s
        self._become(JobState.HUNG, now_s)

    def _is_lively(self, silent: frozenset[int]) -> bool:
        """Whether all that hung go on; if some of them are gone, only the end of the job is left to wait for."""
        goes_on = self._stuck <= self.ranks.keys() and not self._stuck & silent
        goes_on &= all(quiet.stirred_at_s > self.state_at_s for rank, quiet in self.ranks.items() if rank in self._stuck)
        self._lively_looks = self._lively_looks + 1 if goes_on else 0
        return self._lively_looks >= _LIVELY_LOOKS

    def _is_starting(self, report: Report, now_s: float) -> bool:
        is_at_start = report.verdict is not None and report.verdict.kind in _WHILE_STARTING
        return is_at_start and now_s - self.began_at_s < self.patience.start_s

    def _become(self, state: JobState, now_s: float) -> None:
        if state is not self.state:
            self.state, self.state_at_s = state, now_s
