"""One name, two groups: ranks that wait in a group do not agree who belongs to it, or which group the name means."""

from collections.abc import Iterable

from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.correlators.wording import count_ranks, name_ranks, wait_verb
from pardbg.watchdog.graph.divergence import Sides
from pardbg.watchdog.graph.groups import Group
from pardbg.watchdog.model.matching import Token
from pardbg.watchdog.model.members import Run, unfold_members
from pardbg.watchdog.model.names import CollectorName, Confidence, Kind
from pardbg.watchdog.model.ranks import fold_briefly
from pardbg.watchdog.model.report import EvidenceLine, Finding

Claim = tuple[str, tuple[Run, ...]]


def correlate(situation: Situation) -> Iterable[Finding]:
    """One finding per contradictory group in which somebody waits."""
    waited_in = {front.group for standing in situation.standings.values() for front in standing.fronts}
    for group in situation.groups.groups:
        if group.index in waited_in and is_contradiction(situation, group):
            yield _describe(situation, group)


def is_contradiction(situation: Situation, group: Group) -> bool:
    """Members differ, or descriptions were swapped with another name; a description that merely differs is legal."""
    if not group.claims:
        return False
    if len({frozenset(unfold_members(runs)) for runs in {runs for _, runs in group.claims.values()}}) > 1:
        return True
    descs = {desc for desc, _ in group.claims.values()}
    others = (other for other in situation.groups.groups if other.index != group.index)
    return any({desc for desc, _ in other.claims.values()} & descs for other in others)


def _sides(group: Group) -> list[tuple[Claim, tuple[int, ...]]]:
    by_claim: dict[Claim, list[int]] = {}
    for rank, claim in group.claims.items():
        by_claim.setdefault(claim, []).append(rank)
    return sorted(((claim, tuple(ranks)) for claim, ranks in by_claim.items()), key=lambda side: (-len(side[1]), side[1]))


def _describe(situation: Situation, group: Group) -> Finding:
    sides = _sides(group)
    minority = _vote(sides, tuple(rank for rank in group.ranks if rank not in situation.view.recordings))
    accused = minority or tuple(sorted(rank for _, ranks in sides for rank in ranks))
    named = frozenset(accused)
    subjects = tuple(
        situation.subject(rank, f"takes group {group.name} for {_words(claim)}")
        for claim, ranks in sides
        for rank in ranks
        if rank in named
    )
    waiting = situation.waiting_ranks
    victims = tuple(rank for rank in waiting if rank not in named)
    told = "; ".join(f"{name_ranks(ranks)} took it for {_words(claim)}" for claim, ranks in sides)
    return Finding(
        kind=Kind.GROUP_MISMATCH,
        confidence=Confidence.SUPPORTED,
        culprits=subjects if minority else (),
        candidates=() if minority else subjects,
        victims=victims,
        group=situation.group_ref(group),
        claim=f"the ranks do not agree on group {group.name}: {told}; {count_ranks(waiting)} {wait_verb(waiting)}",
        evidence=tuple(_evidence(situation, group, claim, ranks) for claim, ranks in sides),
        advice=("Create all process groups on all ranks, in the same order and with the same members.",),
    )


def _vote(sides: list[tuple[Claim, tuple[int, ...]]], unseen: tuple[int, ...]) -> tuple[int, ...]:
    """The same majority rule as for any divergence."""
    tokens = [(Token(op=_words(claim), dtypes=None, elements=None, where=None), ranks) for claim, ranks in sides]
    return Sides(0, tuple(tokens), unseen).minority


def _words(claim: Claim) -> str:
    desc, runs = claim
    return f"{desc or 'a group'} [{fold_briefly(unfold_members(runs))}]"


def _evidence(situation: Situation, group: Group, claim: Claim, ranks: tuple[int, ...]) -> EvidenceLine:
    text = f"{name_ranks(ranks)}: group {group.name} is {_words(claim)}"
    return situation.view.line(CollectorName.FLIGHT_RECORDER, ranks[0], text)
