"""In what a report falls short of the truth."""

from pardbg.watchdog.model.names import Status
from pardbg.watchdog.model.report import Finding, Report
from pardbg.watchdog.outputs.exit_code import exit_code
from pardbg.watchdog.sim.casebook.case import Case
from pardbg.watchdog.sim.truth import Truth

_LIKE_HUNG = frozenset({Status.HUNG, Status.FAILED, Status.UNDETERMINED})


def objections(report: Report, truth: Truth) -> list[str]:
    """Everything in which a report falls short of the truth; empty if it is right, or as honest as the truth allows."""
    found = _wrongly_blamed(report, truth)
    if is_acceptable(report, truth):
        return found
    verdict = report.verdict
    return found + _differences(
        *_checks(report, truth),
        ("mismatch", verdict.mismatch if verdict else None, truth.mismatch),
        ("edit", verdict.edit if verdict else None, truth.edit),
        ("status", report.status, truth.status),
        ("exit code", exit_code(report), truth.exit_code),
    )


def objections_to_case(report: Report, case: Case) -> list[str]:
    """The same for a case of the casebook, which says only what its source says."""
    truth, verdict = case.truth, report.verdict
    found = _wrongly_blamed(report, truth)
    if is_acceptable(report, truth):
        return found
    checks = _checks(report, truth)
    if truth.mismatch is not None:
        checks.append(("mismatch", verdict.mismatch if verdict else None, truth.mismatch))
    if truth.edit is not None:
        checks.append(("edit", verdict.edit if verdict else None, truth.edit))
    if not (case.is_ended_unsaid and {report.status, truth.status} <= _LIKE_HUNG):
        checks.append(("status", report.status, truth.status))
    return found + _differences(*checks)


def is_acceptable(report: Report, truth: Truth) -> bool:
    """Whether the verdict is one of the less sharp answers that are not wrong."""
    verdict = report.verdict
    kind, named = (verdict.kind, _named(verdict)) if verdict else (None, set())
    return any(kind is answer.kind and named <= {*answer.culprits} for answer in truth.acceptable)


def blamed_ranks(report: Report) -> set[int]:
    """All ranks that any finding accuses."""
    return {rank for finding in report.findings for rank in _named(finding)}


def allowed_ranks(truth: Truth) -> set[int]:
    """All ranks that may be accused."""
    others = (*truth.also, *(answer.culprits for answer in truth.acceptable))
    return {*truth.culprits, *(rank for ranks in others for rank in ranks)}


def _named(finding: Finding) -> set[int]:
    return {subject.rank for subject in finding.culprits if subject.rank is not None}


def _wrongly_blamed(report: Report, truth: Truth) -> list[str]:
    innocent = sorted(blamed_ranks(report) - allowed_ranks(truth))
    hosts = {
        host for finding in report.findings for subject in finding.culprits if subject.rank is None for host in subject.hosts
    }
    strangers = sorted(hosts - {*truth.hosts})
    return [
        *([f"blames innocent ranks {innocent}"] if innocent else []),
        *([f"blames innocent hosts {strangers}"] if strangers else []),
    ]


def _checks(report: Report, truth: Truth) -> list[tuple[str, object, object]]:
    verdict = report.verdict
    kind = verdict.kind if verdict else None
    same_kind = [finding for finding in report.findings if finding.kind is kind]  # two faults may be two findings
    culprits = tuple(sorted({rank for finding in same_kind for rank in _named(finding)}))
    candidates = {subject.rank for subject in verdict.candidates} if verdict else set()
    awaited = tuple(sorted({rank for subject in (verdict.waiting_for if verdict else ()) for rank in subject.ranks}))
    return [
        ("kind", kind, truth.kind),
        ("culprits", culprits, tuple(sorted(truth.culprits))),
        ("cause", verdict.cause if verdict else None, truth.cause),
        ("waiting for", awaited, tuple(sorted(truth.waiting_for))),
        ("candidates left out", set(truth.candidates) - candidates, set()),
        ("wrong victims", set(verdict.victims if verdict else ()) & {*truth.victims_exclude}, set()),
    ]


def _differences(*checks: tuple[str, object, object]) -> list[str]:
    return [f"{name}: {got} instead of {right}" for name, got, right in checks if got != right]
