"""Gatherings: collectives that only stacks show. Who waits with whom, in which operation of which group.

Without a recorder there are no sequence numbers and no member lists. What stacks give: the operation, the group's size, this
rank's place in it and its description (or the source text that names it). Members follow where they can: a group as large as
the world is the world; sibling groups of a regular layout follow from the places of the ranks seen in them. Where they do not
follow they stay unknown.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from pardbg.watchdog.graph.groups import Group, Groups
from pardbg.watchdog.graph.keys import MeetingKey
from pardbg.watchdog.graph.standing import Stance, Standing
from pardbg.watchdog.model.evidence import StackFrame
from pardbg.watchdog.positions.position import GroupSign, Place, Position
from pardbg.watchdog.store.view import WORLD_DESC

Label = tuple[str, int | None]
DEFAULT: Label = (WORLD_DESC, None)


@dataclass(frozen=True)
class Gathering:
    """Ranks that stand in one operation of one group.

    Attributes:
        op: its bare name, empty where no stack tells.
        source: the source of a broadcast (global rank), where it is known.
        frame: where the first of them stands.
        has_members: whether the members of the group are known.
        is_inferred: whether they follow from a regular layout only, which the job need not have.
        may_be_complete: whether as many wait as the group has members, each in a place of its own.
        is_described: whether the group is known by more than a name in a program, which may mean several.
    """

    op: str
    source: int | None
    frame: StackFrame | None
    waiting: tuple[int, ...]
    has_members: bool
    is_described: bool = True
    is_inferred: bool = False
    may_be_complete: bool = False


@dataclass(frozen=True)
class Gatherings:
    """All gatherings, and which one each rank stands in."""

    by_key: dict[MeetingKey, Gathering] = field(default_factory=dict)
    by_rank: dict[int, MeetingKey] = field(default_factory=dict)


def find_gatherings(standings: dict[int, Standing], groups: Groups, world_size: int | None) -> tuple[Groups, Gatherings]:
    """Sorts the ranks that wait by their own stacks into gatherings; their groups are added to the known ones.

    Args:
        standings: of all ranks; those with a usable recording wait where that says.
        groups: the groups that recordings name.
        world_size: the number of ranks.
    """
    waiting = {rank: position for rank, standing in standings.items() if (position := _waits_by_stack(standing)) is not None}
    clusters: dict[tuple[Label, tuple[int, ...] | None], list[int]] = {}
    members = _find_members(waiting, world_size or len(standings))
    for rank, position in waiting.items():
        label = _label(position.sign, world_size)
        clusters.setdefault((label, members.get((label, rank))), []).append(rank)
    found = list(groups.groups)
    gatherings = Gatherings()
    for (label, ranks), cluster in clusters.items():
        group = _add_group(found, label, ranks, cluster)
        for ordinal, (op, source, here) in enumerate(_by_operation(cluster, waiting), 1):
            key = MeetingKey(group.index, -ordinal)
            frame = waiting[here[0]].frame
            is_described = all(waiting[rank].sign.is_described for rank in here)
            places = {waiting[rank].sign.group_rank for rank in here}
            gatherings.by_key[key] = Gathering(
                op,
                source,
                frame,
                here,
                has_members=ranks is not None,
                is_described=is_described,
                is_inferred=ranks is not None and len(ranks) != world_size,
                may_be_complete=len(here) == label[1] and len(places - {None}) == len(here),
            )
            gatherings.by_rank.update(dict.fromkeys(here, key))
    return Groups(tuple(found), groups.by_rank), gatherings


def _waits_by_stack(standing: Standing) -> Position | None:
    position = standing.position
    is_hidden = standing.stance is Stance.HIDDEN and not standing.is_recorded
    if not is_hidden or position is None:
        return None
    is_vague_p2p = position.place is Place.P2P and position.peer is None  # from anybody, or a batch
    return position if is_vague_p2p or position.place in {Place.COLLECTIVE, Place.DEVICE} else None


def _label(sign: GroupSign, world_size: int | None) -> Label:
    if sign.is_default or (sign.size is not None and sign.size == world_size and not sign.label):
        return DEFAULT
    return (sign.label, sign.size)


def _find_members(waiting: dict[int, Position], world_size: int) -> dict[tuple[Label, int], tuple[int, ...]]:
    """The members of each rank's group, where they follow."""
    by_label: dict[Label, dict[int, GroupSign]] = {}
    for rank, position in waiting.items():
        by_label.setdefault(_label(position.sign, world_size), {})[rank] = position.sign
    found: dict[tuple[Label, int], tuple[int, ...]] = {}
    for label, signs in by_label.items():
        size = world_size if label == DEFAULT else label[1]
        stride = 1 if size == world_size else _find_stride(signs, size, world_size)
        if size is None or stride is None:
            continue
        for rank in signs:
            first = rank - (rank // stride) % size * stride
            found[label, rank] = tuple(range(first, first + size * stride, stride))
    return found


def _find_stride(signs: dict[int, GroupSign], size: int | None, world_size: int) -> int | None:
    """The one distance between neighbours in a regular layout that puts every rank seen where it says it is, or None."""
    if not size or world_size % size or any(sign.group_rank is None for sign in signs.values()):
        return None
    strides = [stride for stride in range(1, world_size // size + 1) if world_size % (stride * size) == 0]
    fitting = [stride for stride in strides if all((rank // stride) % size == sign.group_rank for rank, sign in signs.items())]
    return fitting[0] if len(fitting) == 1 else None


def _add_group(groups: list[Group], label: Label, ranks: tuple[int, ...] | None, cluster: Iterable[int]) -> Group:
    name = label[0]
    if label == DEFAULT:
        known = next((group for group in groups if group.desc == WORLD_DESC), None)
        if known is not None:
            return known
    group = Group(len(groups), name, name, ranks or tuple(sorted(cluster)), is_inferred=ranks is None)
    groups.append(group)
    return group


def _by_operation(cluster: list[int], waiting: dict[int, Position]) -> list[tuple[str, int | None, tuple[int, ...]]]:
    sources: dict[str, set[int]] = {}
    for rank in cluster:
        peer = waiting[rank].peer
        sources.setdefault(waiting[rank].op, set()).update([] if peer is None else [peer])
    operations: dict[tuple[str, int | None], list[int]] = {}
    for rank in sorted(cluster):
        position = waiting[rank]
        known = sources[position.op]  # a source that could not be read is no other source
        source = position.peer if len(known) > 1 else next(iter(known), None)
        operations.setdefault((position.op, source), []).append(rank)
    return [(op, source, tuple(ranks)) for (op, source), ranks in operations.items()]
