"""Process groups as the whole job sees them, put together from what each rank says.

A name is not enough: `split_group` gives sibling groups one name, and gloo's dumps say nothing about members. So a group is a
name and the members that agree on each other. Where they contradict each other, that contradiction is kept: it is a finding.
"""

from dataclasses import dataclass, field

from pardbg.watchdog.model.members import Run, count_members, is_member, unfold_members
from pardbg.watchdog.model.recording import Recording
from pardbg.watchdog.store.view import WORLD_DESC, EvidenceView

UNNAMED = ("", "undefined")


@dataclass(frozen=True)
class Group:
    """A process group. ``ranks`` are its known members (global ranks, by group rank).

    ``is_inferred``: nobody said who belongs to it; the members are the ranks that were seen to use it. A collective that
    completed proves that these are all of them (`Progress.is_whole`).
    ``claims``: what each rank says of it (description, runs of members), where the ranks disagree; else empty.
    """

    index: int
    name: str
    desc: str
    ranks: tuple[int, ...]
    is_inferred: bool = False
    claims: dict[int, tuple[str, tuple[Run, ...]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Groups:
    """All groups, and which one a rank means by a name."""

    groups: tuple[Group, ...]
    by_rank: dict[tuple[int, str], int]


@dataclass
class _Claim:
    """What one rank says of one name."""

    rank: int
    desc: str
    runs: tuple[Run, ...] | None


def find_groups(view: EvidenceView) -> Groups:
    """Puts the claims of all ranks together, name by name."""
    claims: dict[str, list[_Claim]] = {}
    for rank, recording in view.recordings.items():
        for name, claim in _claims_of(rank, recording, view.world_size).items():
            claims.setdefault(name, []).append(claim)
    groups: list[Group] = []
    by_rank: dict[tuple[int, str], int] = {}
    for name in sorted(claims, key=_natural):
        for cluster in _cluster(claims[name]):
            group = _merge(len(groups), name, cluster)
            groups.append(group)
            by_rank.update({(claim.rank, name): group.index for claim in cluster})
    return Groups(tuple(groups), by_rank)


def _claims_of(rank: int, recording: Recording, world_size: int | None) -> dict[str, _Claim]:
    claims = {config.name: _Claim(rank, config.desc, config.runs) for config in recording.configs}
    for named in recording.groups:
        known = claims.get(named.name)
        if known is None or (known.desc != named.desc and named.desc not in UNNAMED):
            # An entry's own description wins: with split_group the configuration keeps the last group of a name only.
            members = known.runs if known is not None and known.desc in UNNAMED else None
            claims[named.name] = _Claim(rank, named.desc, members)
    for claim in claims.values():
        if claim.runs is not None and not is_member(rank, claim.runs):
            claim.runs = None  # a list that lacks the rank that uses the group is no list of its members
        if claim.desc == WORLD_DESC and world_size and count_members(claim.runs or ()) != world_size:
            claim.runs = ((0, 1, world_size),)
    return claims


def _cluster(claims: list[_Claim]) -> list[list[_Claim]]:
    """Puts claims of one name together that share a rank; claims without members join the group that holds their rank."""
    alike: dict[tuple[Run, ...], list[_Claim]] = {}
    for claim in claims:
        if claim.runs is not None:
            alike.setdefault(claim.runs, []).append(claim)
    if len(alike) == 1 and len(alike[next(iter(alike))]) == len(claims):
        return [claims]
    clusters: list[list[_Claim]] = []
    homes: dict[int, list[_Claim]] = {}
    for runs, agreeing in alike.items():
        members = {*unfold_members(runs), *(claim.rank for claim in agreeing)}
        cluster = list(agreeing)
        for other in {id(homes[rank]): homes[rank] for rank in members if rank in homes}.values():
            cluster += other
            clusters = [kept for kept in clusters if kept is not other]
        clusters.append(cluster)
        if len(cluster) > len(agreeing):
            members.update(*(unfold_members(known) for known in {claim.runs for claim in cluster if claim.runs}))
        homes.update(dict.fromkeys(members, cluster))
    strays: list[_Claim] = []
    for claim in claims:
        if claim.runs is None:
            homes.get(claim.rank, strays).append(claim)
    return [sorted(cluster, key=lambda claim: claim.rank) for cluster in (*clusters, strays) if cluster]


def _merge(index: int, name: str, cluster: list[_Claim]) -> Group:
    desc = next((claim.desc for claim in cluster if claim.desc not in UNNAMED), cluster[0].desc)
    versions = [unfold_members(runs) for runs in dict.fromkeys(claim.runs for claim in cluster) if runs is not None]
    if not versions:
        return Group(index, name, desc, tuple(sorted(claim.rank for claim in cluster)), is_inferred=True)
    members = versions[0] if len(versions) == 1 else tuple(sorted({rank for ranks in versions for rank in ranks}))
    descs = {claim.desc for claim in cluster if claim.desc not in UNNAMED}
    contradict = len({frozenset(ranks) for ranks in versions}) > 1 or len(descs) > 1
    claims = {claim.rank: (claim.desc, claim.runs) for claim in cluster if claim.runs} if contradict else {}
    return Group(index, name, desc, members, claims=claims)


def _natural(name: str) -> tuple[int, int, str]:
    return (0, int(name), "") if name.isdecimal() and len(name) < 18 else (1, 0, name)
