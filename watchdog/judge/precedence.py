"""Cause before consequence: which finding is the verdict, and which ones merely follow from another."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from pardbg.watchdog.model.names import ILLNESSES, ROUTING_KINDS, Cause, Kind
from pardbg.watchdog.model.report import Finding

ORDER = (
    Kind.DEAD_RANK,
    Kind.DEVICE_STUCK,
    Kind.GROUP_MISMATCH,
    Kind.ORDER_INVERSION,
    Kind.DESYNC,
    Kind.P2P_DEADLOCK,
    Kind.INIT_STUCK,
    Kind.MISSING_PARTICIPANT,
    Kind.P2P_UNMATCHED,
    Kind.COMM_STUCK,
    Kind.MULTI_COMM_DEADLOCK,
    Kind.TEARDOWN_STUCK,
    Kind.STRAGGLER,
    Kind.SLOW_PHASE,
    Kind.INSUFFICIENT_EVIDENCE,
    *ILLNESSES,
    Kind.CONFIG_MISMATCH,
)
"""When several kinds fit, the first is the verdict (contract). An initialisation that is stuck is a missing participant."""

ROUTING_SLACK_STEPS = 50
"""How much earlier than its cause a consequence may seem to begin: both beginnings are estimates."""
CIRCLES = frozenset({Kind.ORDER_INVERSION, Kind.P2P_UNMATCHED, Kind.P2P_DEADLOCK})
DIVERGENCES = frozenset({Kind.GROUP_MISMATCH, Kind.ORDER_INVERSION, Kind.DESYNC})


def rank_findings(
    findings: Iterable[Finding], first_steps: Mapping[int, int] | None = None
) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """Splits findings into those that stand, verdict first, and those set aside as consequences of one that stands.

    ``first_steps`` are the first ones in which the routing of each layer was counted.
    """
    known = first_steps or {}
    standing: list[Finding] = []
    aside: list[Finding] = []
    for finding in sorted(findings, key=lambda finding: _precedence(finding, known)):
        (aside if any(follows(finding, cause) for cause in standing) else standing).append(finding)
    overturned = [finding for finding in standing if any(follows(finding, cause) for cause in standing if cause is not finding)]
    return tuple(finding for finding in standing if finding not in overturned), (*overturned, *aside)


def _precedence(finding: Finding, first_steps: Mapping[int, int]) -> tuple[int, bool, int, bool, int, str, tuple[int, ...]]:
    """An illness of routing that was there all along comes after those that began: somebody may have meant it."""
    first = finding.first_divergence.seq if finding.first_divergence else 0
    is_of_routing = finding.kind in ROUTING_KINDS
    began = finding.since_step if is_of_routing else None
    return (
        ORDER.index(ROUTING_KINDS[0] if is_of_routing else finding.kind),
        began is not None and finding.layer is not None and began <= first_steps.get(finding.layer, -1),
        ORDER.index(finding.kind),
        not _is_by_scheduler(finding),
        first,
        finding.group.name if finding.group else "",
        finding.victims,
    )


def follows(finding: Finding, cause: Finding) -> bool:
    """Whether ``finding`` is nothing but a consequence of ``cause``."""
    if finding.kind is Kind.INSUFFICIENT_EVIDENCE:
        return cause.kind not in {Kind.INSUFFICIENT_EVIDENCE, *ILLNESSES}  # these make nobody wait for ever
    if finding.kind is Kind.GROUP_MISMATCH:
        return cause.kind is Kind.GROUP_MISMATCH and cause is not finding and _named(finding) == _named(cause)
    if Kind.DEAD_RANK in {finding.kind, cause.kind}:
        return _follows_death(finding, cause) if cause.kind is Kind.DEAD_RANK else _died_of(finding, cause)
    if cause.kind is Kind.DESYNC and finding.kind in CIRCLES:
        return _is_caught(finding, cause)
    if cause.kind in DIVERGENCES:
        return finding.kind in {Kind.MISSING_PARTICIPANT, Kind.DESYNC, Kind.COMM_STUCK, Kind.P2P_UNMATCHED} and (
            _same_group(finding, cause) or _names_same(finding, cause)
        )
    return _follows_in_routing(finding, cause)


def _follows_in_routing(finding: Finding, cause: Finding) -> bool:
    """A collapse leaves experts without tokens, heats ranks and fills capacities; what began long before is of its own."""
    explained = {Kind.ROUTER_COLLAPSE: ROUTING_KINDS[2:], Kind.DEAD_EXPERTS: (Kind.EP_IMBALANCE,)}.get(cause.kind, ())
    if finding.kind not in explained or finding.layer != cause.layer:
        return False
    began, caused = finding.since_step, cause.since_step
    return began is None or caused is None or began >= caused - ROUTING_SLACK_STEPS


def _is_by_scheduler(finding: Finding) -> bool:
    """Whether it names no rank: a scheduler ended them all, so that their ends are consequences. A hang before it is not."""
    return finding.kind is Kind.DEAD_RANK and finding.cause in {Cause.PREEMPTED, Cause.NODE_LOST}


def _follows_death(finding: Finding, death: Finding) -> bool:
    """What the living do after a death is its consequence: they wait, retry, clean up; so is a death by a scheduler."""
    if finding.kind is Kind.DEAD_RANK:
        return _is_by_scheduler(death) and not _is_by_scheduler(finding)
    return finding.kind in {Kind.MISSING_PARTICIPANT, Kind.SLOW_PHASE, Kind.COMM_STUCK}


def clear_of_blame(finding: Finding, blamed: frozenset[int]) -> Finding:
    """A consequence accuses nobody: whoever it would blame besides those who are to blame anyway becomes a candidate."""
    kept = tuple(subject for subject in finding.culprits if subject.rank in blamed)
    others = tuple(subject for subject in finding.culprits if subject.rank not in blamed)
    return clear_victims(replace(finding, culprits=kept, candidates=(*finding.candidates, *others)), blamed)


def clear_victims(finding: Finding, blamed: frozenset[int]) -> Finding:
    """Victims only wait: who is to blame for anything is none."""
    return replace(finding, victims=tuple(rank for rank in finding.victims if rank not in blamed))


def _is_caught(circle: Finding, desync: Finding) -> bool:
    """Whether the rank that diverged is one of those that wait in the circle."""
    return bool({*_named(circle), *circle.victims} & {s.rank for s in desync.culprits})


def _died_of(death: Finding, desync: Finding) -> bool:
    """A mismatch makes gloo abort the process that notices it: that death is a consequence."""
    if desync.kind is not Kind.DESYNC:
        return False
    aborted = all("SIGABRT" in subject.why for subject in death.culprits)
    return death.cause is Cause.SIGNAL and aborted and _names_same(death, desync)


def _same_group(finding: Finding, cause: Finding) -> bool:
    if finding.group is None or cause.group is None or finding.group.name != cause.group.name:
        return False
    return bool({*finding.group.ranks} & {*cause.group.ranks})  # sibling groups may share a name


def _names_same(finding: Finding, cause: Finding) -> bool:
    named = _named(finding)
    return bool(named) and named <= _named(cause)


def _named(finding: Finding) -> set[int]:
    subjects: Sequence[int | None] = [subject.rank for subject in (*finding.culprits, *finding.candidates)]
    return {rank for rank in subjects if rank is not None}
