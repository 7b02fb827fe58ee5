"""What a report is worth to a shell: 0 healthy or only information, 3 a fault, 4 undetermined."""

from enum import IntEnum

from pardbg.watchdog.model.names import Kind, Status
from pardbg.watchdog.model.report import Report


class ExitCode(IntEnum):
    """The exit codes that a report decides. The command line adds those of failure, wrong usage and interruption."""

    HEALTHY = 0
    FAULT = 3
    UNDETERMINED = 4


_INFORMATION = frozenset({Kind.CONFIG_MISMATCH, Kind.LAYOUT_WARNING})


def exit_code(report: Report, *, strict: bool = False) -> int:
    """Judge a report for a shell. ``strict`` makes a slow phase a fault.

    A fault among the findings counts even where the verdict is only information: both were found.
    """
    if report.status is Status.UNDETERMINED:
        return ExitCode.UNDETERMINED
    kinds = {finding.kind for finding in (report.verdict, *report.findings) if finding is not None}
    harmless = _INFORMATION if strict else _INFORMATION | {Kind.SLOW_PHASE}
    if kinds - harmless - {Kind.INSUFFICIENT_EVIDENCE}:
        return ExitCode.FAULT
    if Kind.INSUFFICIENT_EVIDENCE in kinds:
        return ExitCode.UNDETERMINED
    is_explained = kinds or report.status is Status.HEALTHY
    return ExitCode.HEALTHY if is_explained else ExitCode.UNDETERMINED
