"""Counts how right answers are, over many cases with a known truth."""

from dataclasses import dataclass

from pardbg.watchdog.bench.objections import allowed_ranks, blamed_ranks
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.names import Kind
from pardbg.watchdog.model.report import Report
from pardbg.watchdog.sim.truth import Truth

HEALTHY = "healthy"


class Said(Noun, frozen=True, kw_only=True):
    """What a tool says of one case. ``is_right``: as sharp as the truth, or as its less sharp answers; None if not asked.

    ``has_crashed``: it gave no answer but a traceback.
    """

    ranks: frozenset[int] = frozenset()
    hosts: frozenset[str] = frozenset()
    is_alarm: bool = False
    has_cause: bool | None = None
    is_right: bool | None = None
    has_crashed: bool = False


def read_report(report: Report, truth: Truth, *, is_right: bool) -> Said:
    """What a report of pardbg says."""
    verdict = report.verdict
    asked = truth.cause is not None and verdict is not None and verdict.kind is truth.kind
    return Said(
        ranks=frozenset(blamed_ranks(report)),
        hosts=frozenset(host for finding in report.findings for subject in finding.culprits for host in subject.hosts),
        is_alarm=verdict is not None and verdict.kind not in {Kind.INSUFFICIENT_EVIDENCE, Kind.CONFIG_MISMATCH},
        has_cause=verdict is not None and verdict.cause is truth.cause if asked else None,
        is_right=is_right,
    )


@dataclass
class Tally:
    """Sums over cases. Rates are None where nothing was asked.

    ``named`` counts accused ranks, ``justly`` those of them whom the truth allows to accuse; ``guilty`` cases with culprits,
    ``found`` those of them in which all were named; ``untold`` cases in which nobody may be accused, ``elected`` those in
    which somebody was; ``controls`` healthy jobs, ``alarms`` those of them called ill.
    """

    cases: int = 0
    right: int = 0
    named: int = 0
    justly: int = 0
    guilty: int = 0
    found: int = 0
    asked_causes: int = 0
    right_causes: int = 0
    controls: int = 0
    alarms: int = 0
    untold: int = 0
    elected: int = 0
    crashed: int = 0

    def add(self, said: Said, truth: Truth) -> None:
        """Counts one case."""
        justly = said.ranks & allowed_ranks(truth)
        self.cases += 1
        self.right += said.is_right is True
        self.named += len(said.ranks)
        self.justly += len(justly)
        self.crashed += said.has_crashed
        if said.has_cause is not None:
            self.asked_causes += 1
            self.right_causes += said.has_cause
        if truth.kind is None:
            self.controls += 1
            self.alarms += said.is_alarm
        elif truth.culprits:
            self.guilty += 1
            self.found += said.ranks >= {*truth.culprits}
        else:
            self.untold += 1
            self.elected += bool(said.ranks - justly)

    def include(self, other: "Tally") -> None:
        """Adds the sums of another."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)

    @property
    def precision(self) -> float | None:
        """Share of the accused who are guilty."""
        return self.justly / self.named if self.named else None

    @property
    def recall(self) -> float | None:
        """Share of the cases with culprits in which all of them were named."""
        return self.found / self.guilty if self.guilty else None

    @property
    def cause_accuracy(self) -> float | None:
        """Share of right causes where the kind was right and there is one to tell."""
        return self.right_causes / self.asked_causes if self.asked_causes else None


def class_of(truth: Truth) -> str:
    """The row that a case is counted in."""
    return truth.kind.value if truth.kind else HEALTHY
