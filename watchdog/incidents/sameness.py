"""Whether two reports of one hang say the same: then nobody is told again. Pure."""

from pardbg.watchdog.model.report import Finding, Report, Subject


def say_the_same(one: Report, other: Report) -> bool:
    """Whether they name the same trouble and the same culprits; how long it lasts, and why a rank is suspected, may differ."""
    return one.status is other.status and _gist(one.verdict) == _gist(other.verdict)


def _gist(verdict: Finding | None) -> tuple[object, ...]:
    if verdict is None:
        return ()
    return verdict.kind, verdict.cause, _names(verdict.culprits), _names(verdict.candidates)


def _names(subjects: tuple[Subject, ...]) -> frozenset[tuple[object, ...]]:
    return frozenset(
        (subject.scope, subject.rank, subject.ranks, subject.host, subject.hosts, subject.device) for subject in subjects
    )
