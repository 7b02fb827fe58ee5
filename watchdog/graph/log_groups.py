"""Which group an old watchdog means: its line on a timeout names none, the next one of the same rank and number does. Pure."""

from dataclasses import replace as replace_fact

from msgspec.structs import replace

from pardbg.watchdog.graph.log_facts import LogFact, LogFacts
from pardbg.watchdog.model.log_event import CollectiveTimeout, GroupName, GroupStatus

_Named = dict[tuple[int | None, int | None], set[tuple[GroupName, int | None]]]


def with_group_names(logs: LogFacts) -> LogFacts:
    """The facts with the group that a rank's own status line names for a wait; two that do leave it open. Linear."""
    named: _Named = {}
    for fact, status in logs.of_type(GroupStatus):
        if fact.rank is not None and status.at_work is not None and status.group.name:
            named.setdefault((fact.rank, status.at_work), set()).add((status.group, status.group_rank))
    waits = [(fact, wait) for fact, wait in logs.of_type(CollectiveTimeout) if not wait.group.name] if named else []
    found = {id(fact): _group_of(fact.rank, wait, named) for fact, wait in waits}
    if not any(found.values()):
        return logs
    common = _common([(fact, wait, found[id(fact)]) for fact, wait in waits])
    groups = {key: group or common for key, group in found.items()}
    return replace_fact(logs, facts=tuple(_with_group(fact, groups.get(id(fact))) for fact in logs.facts))


def _group_of(rank: int | None, wait: CollectiveTimeout, named: _Named) -> GroupName | None:
    found = named.get((rank, wait.seq), set()) if rank is not None and wait.seq is not None else set()
    fitting = {group for group, number in found if None in {number, wait.group_rank} or number == wait.group_rank}
    return fitting.pop() if len(found) == 1 and fitting else None


def _common(waits: list[tuple[LogFact, CollectiveTimeout, GroupName | None]]) -> GroupName | None:
    """The one group of all that have one, where every rank has its own number in it: of several groups some would not."""
    groups = {group for _, _, group in waits if group is not None}
    is_numbered = all(wait.group_rank is not None and wait.group_rank == fact.rank for fact, wait, _ in waits)
    return groups.pop() if len(groups) == 1 and is_numbered else None


def _with_group(fact: LogFact, group: GroupName | None) -> LogFact:
    is_meant = group is not None and isinstance(fact.event, CollectiveTimeout)
    return replace_fact(fact, event=replace(fact.event, group=group)) if is_meant else fact
