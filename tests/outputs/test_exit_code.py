"""Exit codes, as the contract's table has them."""

import msgspec
import pytest
from tests.outputs.samples import SAMPLES

from pardbg.watchdog.model.names import Confidence, Kind, Status
from pardbg.watchdog.model.report import Finding, Report
from pardbg.watchdog.outputs.exit_code import exit_code

SPECIAL = {Kind.SLOW_PHASE: 0, Kind.CONFIG_MISMATCH: 0, Kind.LAYOUT_WARNING: 0, Kind.INSUFFICIENT_EVIDENCE: 4}


def report_of(*kinds: Kind, status: Status = Status.HUNG) -> Report:
    findings = tuple(Finding(kind=kind, confidence=Confidence.SUPPORTED, claim=kind.value) for kind in kinds)
    return msgspec.structs.replace(
        SAMPLES["healthy"], status=status, verdict=findings[0] if findings else None, findings=findings
    )


@pytest.mark.parametrize("kind", Kind)
def test_verdict_decides(kind: Kind) -> None:
    assert exit_code(report_of(kind)) == SPECIAL.get(kind, 3)


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        (report_of(status=Status.HEALTHY), 0),
        (report_of(status=Status.UNDETERMINED), 4),
        (report_of(status=Status.HUNG), 4),
        (report_of(Kind.MISSING_PARTICIPANT, status=Status.UNDETERMINED), 4),
        (report_of(Kind.SLOW_PHASE, Kind.ROUTER_COLLAPSE, status=Status.SLOW), 3),
        (report_of(Kind.CONFIG_MISMATCH, Kind.INSUFFICIENT_EVIDENCE), 4),
        (report_of(Kind.INSUFFICIENT_EVIDENCE, Kind.CONFIG_MISMATCH), 4),
    ],
)
def test_report_without_a_plain_verdict(report: Report, expected: int) -> None:
    assert exit_code(report) == expected


def test_strict_makes_a_slow_phase_a_fault() -> None:
    assert exit_code(report_of(Kind.SLOW_PHASE, status=Status.SLOW), strict=True) == 3
