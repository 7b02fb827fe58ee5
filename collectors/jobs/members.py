"""Which processes are ranks of which world: told from launchers, wrappers, children and leftovers that say the same. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from pardbg.collectors.jobs.family import Family
from pardbg.collectors.jobs.identity import Identity, WorldKey, identify
from pardbg.collectors.jobs.process import JobProcess
from pardbg.watchdog.model.base import Noun

_NAMES_OF_WORKERS = frozenset({"pt_data_worker", "pt_data_pin"})


class Member(Noun, frozen=True, kw_only=True):
    """A process that says it is a rank."""

    process: JobProcess
    identity: Identity


class Members(Noun, frozen=True, kw_only=True):
    """The ranks of one world that live here, and ``duplicates``: unrelated older processes with the number of one of them."""

    ranks: Mapping[int, Member]
    duplicates: tuple[Member, ...] = ()


def find_members(processes: Iterable[JobProcess], family: Family) -> dict[WorldKey, Members]:
    """The ranks of every world, in the order of their oldest processes."""
    claims = _claims(sorted(processes, key=lambda process: process.age), family)
    worlds: dict[WorldKey, dict[int, list[Member]]] = defaultdict(lambda: defaultdict(list))
    for member in claims:
        worlds[member.identity.key][member.identity.rank].append(member)
    found = {key: _settle(ranks, family) for key, ranks in worlds.items()}
    return {key: members for key, members in found.items() if _is_plausible(key, members)}


def _claims(processes: Iterable[JobProcess], family: Family) -> list[Member]:
    """All Python processes that say which rank they are. For one that does not answer, those around it speak."""
    claims = []
    for process in processes:
        identity = identify(process)
        if process.is_silent and not process.is_launcher and not process.is_ended:
            identity = _identify_silent(process, family)
        if identity is not None and process.is_python and process.stat.name not in _NAMES_OF_WORKERS:
            claims.append(Member(process=process, identity=identity))
    return _without_bystanders(claims, family)


def _identify_silent(process: JobProcess, family: Family) -> Identity | None:
    """What the parent says, which is a shell then; else what all children say that it has started."""
    parent = family.get(process.stat.parent_pid)
    inherited = identify(parent) if parent else None
    passed_on = {identity for child in family.children(frozenset({process.pid})) if (identity := identify(child))}
    return inherited or (passed_on.pop() if len(passed_on) == 1 else None)


def _without_bystanders(claims: list[Member], family: Family) -> list[Member]:
    """Without those that a scheduler counts but which only start the ranks, or are started beside or by them."""
    real = [member.process for member in claims if member.identity.source == "environment"]
    above = {ancestor.pid for process in real for ancestor in family.ancestors(process)}
    related = frozenset(above | {process.pid for process in real})
    return [
        member
        for member in claims
        if member.identity.source != "scheduler"
        or not (
            member.process.pid in above
            or family.launcher(member.process)
            or family.has_ancestor(member.process, related - above)
        )
    ]


def _settle(ranks: Mapping[int, list[Member]], family: Family) -> Members:
    """Of all that claim a number: the topmost that use torch; of unrelated ones the youngest."""
    tops = {rank: _topmost(claims, family) for rank, claims in ranks.items()}
    if any(not _is_leftover(member, family) for members in tops.values() for member in members):
        tops = {rank: [member for member in members if not _is_leftover(member, family)] for rank, members in tops.items()}
    by_age = {rank: sorted(members, key=lambda member: member.process.age) for rank, members in sorted(tops.items()) if members}
    return Members(
        ranks={rank: members[-1] for rank, members in by_age.items()},
        duplicates=tuple(member for members in by_age.values() for member in members[:-1]),
    )


def _topmost(claims: list[Member], family: Family) -> list[Member]:
    if any(member.process.maps_torch for member in claims):
        claims = [member for member in claims if member.process.maps_torch or member.process.is_silent]
    pids = frozenset(member.process.pid for member in claims)
    return [member for member in claims if not family.has_ancestor(member.process, pids)]


def _is_leftover(member: Member, family: Family) -> bool:
    """Whether it is what a rank that has ended had started: a copy of it, or a helper of its libraries."""
    parent = family.get(member.process.stat.parent_pid)
    is_helper = bool(member.process.look and member.process.look.command.is_worker)
    return member.process.stat.is_forked or (is_helper and (parent is None or not parent.is_python))


def _is_plausible(key: WorldKey, members: Members) -> bool:
    """A lone ``--rank 16`` may mean anything: it takes a world size or a second rank beside it to be believed."""
    on_command_line = all(member.identity.source == "command-line" for member in members.ranks.values())
    return bool(members.ranks) and (not on_command_line or key.world_size is not None or len(members.ranks) > 1)
