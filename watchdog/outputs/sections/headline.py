"""The top of the page: the state of the job, the verdict's claim, and how sure it is."""

from pardbg.watchdog.model.names import CollectorName, Kind, Status
from pardbg.watchdog.model.report import CollectiveRef, Finding, Report
from pardbg.watchdog.outputs.blocks import Fact, Facts
from pardbg.watchdog.outputs.meanings import KIND_MEANING
from pardbg.watchdog.outputs.phrases import count_of, name_collective, name_group, name_job, spell_duration, spell_sizes

_KINDS_WITH_CAUSES = frozenset(
    {
        Kind.MISSING_PARTICIPANT,
        Kind.DEAD_RANK,
        Kind.DEVICE_STUCK,
        Kind.COMM_STUCK,
        Kind.INIT_STUCK,
        Kind.SLOW_PHASE,
        Kind.STRAGGLER,
    }
)
"""Kinds of which a reader asks "why?"; for these, a cause that is not established is worth saying."""


def claim(report: Report) -> str:
    """Say in one sentence what the report comes to: the verdict's claim, or what follows from having none."""
    if report.verdict is not None:
        return report.verdict.claim
    if report.status is Status.HEALTHY:
        return f"No fault was found in {_seen(report)}."
    if report.status is Status.UNDETERMINED and not report.coverage.ranks_seen and report.notes:
        return f"{report.notes[-1]}."  # why nothing was seen
    if report.status is Status.UNDETERMINED:
        return f"What was seen of {_seen(report)} does not say whether anything is wrong."
    if report.status is Status.FAILED and report.notes:
        return f"{report.notes[-1]}."  # what ended the job
    return "Something is wrong, and no finding explains it."


def facts(report: Report) -> Facts:
    """List what identifies the job and the verdict; notes come last, as they qualify everything above them."""
    shown = [Fact(label="job", value=name_job(report.job))]
    if report.verdict is not None:
        shown += _verdict_facts(report.verdict)
    said = claim(report)
    shown += [Fact(label="note", value=note) for note in report.notes if f"{note}." != said]
    return Facts(facts=tuple(shown))


def _verdict_facts(verdict: Finding) -> list[Fact]:
    values = {
        "verdict": f"{verdict.kind.value}: {KIND_MEANING[verdict.kind]}",
        "cause": _cause(verdict),
        "confidence": verdict.confidence.value,
        "operation": _operation(verdict.collective) if verdict.collective else "",
        "group": name_group(verdict.group) if verdict.group else "",
        "since": _since(verdict),
        "cost": _cost(verdict),
        "layer": "" if verdict.layer is None else str(verdict.layer),
    }
    return [Fact(label=label, value=value) for label, value in values.items() if value]


def _cause(verdict: Finding) -> str:
    if verdict.cause is not None:
        return verdict.cause.value
    return "not established" if verdict.kind in _KINDS_WITH_CAUSES else ""


def _operation(collective: CollectiveRef) -> str:
    what = " ".join(part for part in (spell_sizes(collective.sizes), collective.dtype or "") if part)
    return f"{name_collective(collective)} of {what}" if what else name_collective(collective)


def _since(verdict: Finding) -> str:
    parts = []
    if verdict.since_s is not None:
        parts.append(f"{spell_duration(verdict.since_s)} ago")
    if verdict.since_step is not None:
        parts.append(f"step {verdict.since_step}")
    return ", ".join(parts)


def _cost(verdict: Finding) -> str:
    if verdict.cost is None:
        return ""
    return f"steps take {verdict.cost.slowdown:.2f} times as long; {verdict.cost.share:.0%} of the step time is lost"


def _seen(report: Report) -> str:
    seen, expected = report.coverage.ranks_seen, report.coverage.ranks_expected
    if not seen and CollectorName.ROUTING.value in report.coverage.by_collector:
        return "what was seen of the whole job"
    if expected is None:
        return f"the {count_of(seen, 'rank')} seen (how many there are is not known)"
    return f"all {count_of(seen, 'rank')}" if seen == expected else f"{seen} of {count_of(expected, 'rank')}"
