"""Where ranks stood when their watchdogs gave up: one place a group and number, as far as lines tell. Pure.

A watchdog's status tells the number of an operation and not which it is; where another rank's line does, they are at one place.
No place is a group of which all that was issued is done, nor a heartbeat that stood still.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from pardbg.watchdog.graph.log_facts import LogFacts
from pardbg.watchdog.model.log_event import (
    WAITS,
    CollectiveTimeout,
    GroupName,
    GroupStatus,
    LostSign,
    PeerLost,
)

_OF_ALL = frozenset({"all_reduce", "all_gather", "_all_gather_base", "_reduce_scatter_base", "reduce_scatter", "all_to_all"})
"""Operations that nobody finishes before all members have entered them; a broadcast's root may."""


@dataclass(frozen=True)
class LogPlace:
    """One operation in which ranks waited.

    Attributes:
        op: empty where only its number is told. ``seq``: None where the watchdog numbers nothing.
        ranks: the global ranks that waited in it.
        members: of those whose global rank is not told, the ranks in their group.
        wait: one of the lines that tell of it, if any tells more than the number.
    """

    group: GroupName
    seq: int | None
    op: str
    ranks: tuple[int, ...]
    members: tuple[int, ...]
    wait: CollectiveTimeout | None

    @property
    def count(self) -> int:
        """How many ranks, as far as lines tell them apart."""
        return len(self.ranks) + len(self.members)


def places_of(logs: LogFacts) -> tuple[LogPlace, ...]:
    """The places, those with most ranks first."""
    found: dict[tuple[GroupName, int | None, str], list[tuple[int | None, int | None, CollectiveTimeout | None]]] = {}
    for (rank, member, group), wait in _first_waits(logs).items():
        key = (group, wait.seq, "" if group.name and wait.seq is not None else wait.op)
        found.setdefault(key, []).append((rank, member, wait))
    told = {(fact.rank, event.group) for fact, event in logs.of_type(CollectiveTimeout)}
    for fact, status in logs.of_type(GroupStatus):
        if status.is_open and (fact.rank, status.group) not in told:
            seq = status.at_work if (status.at_work or -1) > status.completed else status.completed + 1
            found.setdefault((status.group, seq, ""), []).append((fact.rank, status.group_rank, None))
    places = _joined([_place(group, seq, there) for (group, seq, _), there in found.items()])
    return tuple(sorted(places, key=lambda place: (-place.count, place.group.name, place.seq or 0, place.op)))


def _joined(places: list[LogPlace]) -> list[LogPlace]:
    """Joins a place of no named group to the only one of a named group that is alike: some ranks name it, and some do not."""
    named = [place for place in places if place.group.name]
    for place in [place for place in places if not place.group.name and place.seq is not None and place.wait is not None]:
        alike = [other for other in named if _is_alike(place, other)]
        if len(alike) == 1:
            places = [other for other in places if other is not place and other is not alike[0]]
            named.remove(alike[0])
            ranks, members = {*alike[0].ranks, *place.ranks}, {*alike[0].members, *place.members}
            named.append(
                replace(alike[0], op=place.op, ranks=tuple(sorted(ranks)), members=tuple(sorted(members)), wait=place.wait)
            )
            places.append(named[-1])
    return places


def _is_alike(place: LogPlace, other: LogPlace) -> bool:
    """Whether number, operation and size are the same; where only a number is told, the ranks."""
    if other.wait is None or place.wait is None:
        return place.seq == other.seq and place.ranks == other.ranks
    is_same = (place.seq, place.op, place.wait.numel_in) == (other.seq, other.op, other.wait.numel_in)
    return is_same and not {*place.ranks} & {*other.ranks}


def waiting_ranks(logs: LogFacts) -> frozenset[int]:
    """The global ranks of which some line says that they waited, their own or that of one which they made dump."""
    ranks = {fact.rank for fact in logs.facts if isinstance(fact.event, WAITS) and not isinstance(fact.event, GroupStatus)}
    ranks |= {fact.rank for fact, status in logs.of_type(GroupStatus) if status.is_open}
    ranks |= {status.timed_out for _, status in logs.of_type(GroupStatus)}
    ranks |= {fact.rank for fact, event in logs.of_type(PeerLost) if event.sign is LostSign.OWN_TIMEOUT}
    return frozenset(rank for rank in ranks if rank is not None)


def overtaken(logs: LogFacts, places: Iterable[LogPlace]) -> dict[int, LogPlace]:
    """The few ranks of a named group that wait in an operation of all members which most others of them have finished."""
    by_group: dict[GroupName, list[LogPlace]] = {}
    for place in places:
        if place.group.name and place.seq is not None:
            by_group.setdefault(place.group, []).append(place)
    found: dict[int, LogPlace] = {}
    for group, there in by_group.items():
        done = {fact.rank: status.completed for fact, status in logs.of_type(GroupStatus) if status.group == group}
        last = min(there, key=lambda place: place.seq or 0)
        ahead = {rank for place in there if place is not last for rank in place.ranks if done.get(rank, -1) >= (last.seq or 0)}
        if last.op in _OF_ALL and not last.members and len(last.ranks) < len(ahead) and _is_one_group(logs, group):
            found |= dict.fromkeys(last.ranks, last)
    return found


def _is_one_group(logs: LogFacts, group: GroupName) -> bool:
    """Whether no two ranks have one number in it: siblings may share a name."""
    owners: dict[int | None, set[int | None]] = {}
    for fact in logs.facts:
        if isinstance(fact.event, CollectiveTimeout | GroupStatus) and fact.event.group == group:
            owners.setdefault(fact.event.group_rank, set()).add(fact.rank)
    return all(len(ranks) == 1 for ranks in owners.values())


def _first_waits(logs: LogFacts) -> dict[tuple[int | None, int | None, GroupName], CollectiveTimeout]:
    """The earliest operation of each rank in each group: the later ones wait behind it."""
    found: dict[tuple[int | None, int | None, GroupName], CollectiveTimeout] = {}
    for fact, event in logs.of_type(CollectiveTimeout):
        key = (fact.rank, event.group_rank if fact.rank is None else None, event.group)
        known = found.setdefault(key, event)
        if known.seq is not None and event.seq is not None and event.seq < known.seq:
            found[key] = event
    return found


def _place(group: GroupName, seq: int | None, there: list[tuple[int | None, int | None, CollectiveTimeout | None]]) -> LogPlace:
    wait = next((wait for _, _, wait in there if wait is not None), None)
    return LogPlace(
        group=group,
        seq=seq,
        op=wait.op if wait is not None else "",
        ranks=tuple(sorted({rank for rank, _, _ in there if rank is not None})),
        members=tuple(sorted({member for rank, member, _ in there if rank is None and member is not None})),
        wait=wait,
    )
