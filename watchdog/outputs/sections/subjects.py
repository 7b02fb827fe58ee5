"""Subjects as facts: who, where, and what points at them. Ranks of one host with one reason are told once."""

from collections.abc import Sequence

from pardbg.watchdog.model.names import CollectorName, Scope
from pardbg.watchdog.model.report import EvidenceLine, Finding, Subject
from pardbg.watchdog.outputs.blocks import Block, Depth, Fact, Facts, what_is_left
from pardbg.watchdog.outputs.phrases import count_of, identify_device, list_names, name_coords, name_ranks, name_subject

_PIDS_SHOWN = 8


def subject_blocks(finding: Finding, subjects: Sequence[Subject], depth: Depth) -> tuple[Block, ...]:
    """Tell of each subject in turn, up to the depth's limit."""
    alike: dict[tuple[object, ...], list[Subject]] = {}
    for subject in subjects:
        alike.setdefault(_likeness(finding, subject), []).append(subject)
    shown = list(alike.values())[: depth.item_limit]
    return (*(_facts(finding, members) for members in shown), *what_is_left(len(alike), depth))


def _likeness(finding: Finding, subject: Subject) -> tuple[object, ...]:
    """Return what must be equal for two subjects to be told as one; only ranks ever are."""
    if subject.scope is Scope.RANK:
        return subject.scope, subject.host, subject.why, _stack_top(finding, subject)
    return (name_subject(subject), subject.host, subject.pid, subject.why)


def _facts(finding: Finding, members: list[Subject]) -> Facts:
    first = members[0]
    values = {
        "who": _who(members),
        "device": identify_device(first.device),
        "on": _place(members),
        "why": first.why,
        "stack": _stack_top(finding, first),
    }
    return Facts(facts=tuple(Fact(label=label, value=value) for label, value in values.items() if value))


def _who(members: list[Subject]) -> str:
    if len(members) == 1:
        coords, name = name_coords(members[0].coords), name_subject(members[0])
        return f"{name} ({coords})" if coords and not name.startswith("EP rank") else name
    ranks = sorted({member.rank for member in members if member.rank is not None})
    return f"{name_ranks(ranks)} ({count_of(len(ranks), 'rank')})"


def _place(members: list[Subject]) -> str:
    """Say where to log in; a host that the name already tells is not repeated."""
    first = members[0]
    host = first.host if first.host and first.scope is not Scope.HOST else None
    pids = [str(member.pid) for member in members if member.pid is not None]
    label = "pid" if len(pids) == 1 else "pids"
    return ", ".join(part for part in (host, f"{label} {list_names(pids, _PIDS_SHOWN)}" if pids else None) if part)


def _stack_top(finding: Finding, subject: Subject) -> str:
    """Return what the stacks say of this very rank: the first such line of the evidence."""
    return next((line.text for line in finding.evidence if _is_stack_of(line, subject)), "")


def _is_stack_of(line: EvidenceLine, subject: Subject) -> bool:
    return line.source is CollectorName.STACKS and line.rank is not None and line.rank == subject.rank
