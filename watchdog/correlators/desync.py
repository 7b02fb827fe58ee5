"""Ranks of one group issued different operations at one sequence number, or with other arguments, or from elsewhere."""

from collections.abc import Iterable

from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.correlators.wording import count_ranks, name_group, name_ranks, since_moment, wait_verb
from pardbg.watchdog.graph.divergence import DivergenceFound, Sides
from pardbg.watchdog.graph.groups import Group
from pardbg.watchdog.model.matching import Token
from pardbg.watchdog.model.names import CollectorName, Confidence, Edit, Kind, Mismatch
from pardbg.watchdog.model.report import CollectiveRef, Divergence, EvidenceLine, Finding, Side
from pardbg.watchdog.positions.position import Place

EDIT_WORDS = {
    Edit.SKIPPED: "skipped an operation",
    Edit.EXTRA: "issued an operation that the others did not",
    Edit.SWAPPED: "swapped two operations",
}
MAX_SIZES = 3  # in a sentence; the table of sides has all
MAX_DIMENSIONS = 8
ADVICE = {
    Mismatch.OP: "Look for a branch around this collective that not every rank takes.",
    Mismatch.DTYPE: "Make the tensor's type the same on all ranks.",
    Mismatch.SIZE: (
        "Make the tensor's size the same on all ranks: uneven batches, or modules that some ranks skip, are the usual reasons."
    ),
    Mismatch.SPLITS: "Compare the input and output splits of every pair of ranks: what one sends the other must expect.",
    Mismatch.ROOT: "Make every rank name the same root.",
    Mismatch.CALL_SITE: "Look for a branch around these calls that not every rank takes: from here on the ranks are shifted.",
}


def correlate(situation: Situation) -> Iterable[Finding]:
    """One finding per group that diverged."""
    for divergence in situation.divergences:
        if divergence.group.claims:
            continue  # `group_mismatch` speaks of it
        yield _describe(situation, divergence)


def _describe(situation: Situation, found: DivergenceFound) -> Finding:
    minority = found.sides.minority if found.mismatch is not Mismatch.SPLITS else ()
    sides = _told(situation, found, found.sides)
    involved = [rank for side, _ in sides for rank in side.ranks]
    accused = minority or tuple(sorted(involved))
    subjects = tuple(
        situation.subject(rank, f"issued {words}") for side, words in sides for rank in side.ranks if rank in accused
    )
    waiting = {*situation.waiting_ranks, *involved}
    since_ns = _first_wait_ns(situation)
    victims = tuple(sorted(waiting - set(minority))) if minority else tuple(sorted(waiting - set(involved)))
    later = _told(situation, found, found.then) if found.then is not None else []
    return Finding(
        kind=Kind.DESYNC,
        confidence=_confidence(found, minority),
        culprits=subjects if minority else (),
        candidates=() if minority else subjects,
        victims=victims,
        group=situation.group_ref(found.group),
        collective=_collective(situation, found),
        mismatch=found.mismatch,
        edit=found.edit if minority else None,
        first_divergence=Divergence(group=found.group.name, seq=found.sides.seq, sides=tuple(side for side, _ in sides)),
        since_s=situation.seconds_since(since_ns),
        claim=_claim(found, minority, sides, victims) + since_moment(situation, since_ns),
        evidence=(
            *(_evidence(situation, found, found.sides.seq, *side) for side in sides),
            *(_evidence(situation, found, found.then.seq if found.then else 0, *side) for side in later),
        ),
        advice=(ADVICE[found.mismatch],),
    )


def _first_wait_ns(situation: Situation) -> int | None:
    """When the first rank came to stand still: the divergence itself may lie long before."""
    fronts = (standing.fronts[0].operation for standing in situation.standings.values() if standing.fronts)
    return min((operation.created_ns for operation in fronts if operation.created_ns), default=None)


def _confidence(found: DivergenceFound, minority: tuple[int, ...]) -> Confidence:
    may_be_legal = found.mismatch is Mismatch.CALL_SITE and found.edit is None and found.then is None
    return Confidence.SUGGESTED if minority and (found.sides.silent or may_be_legal) else Confidence.SUPPORTED


def _told(situation: Situation, found: DivergenceFound, sides: Sides) -> list[tuple[Side, str]]:
    """Each side and what it issued, in words."""
    told = []
    for token, ranks in sides.sides:
        signature = situation.progress.signature(ranks[0], found.group.index, sides.seq)
        where = token.where or _where_it_waits(situation, found.group, sides.seq, ranks[0])
        side = Side(ranks=ranks, op=signature.op, sizes=signature.input_sizes, where=where)
        told.append((side, _words(side, _peculiarity(found.mismatch, token))))
    return told


def _where_it_waits(situation: Situation, group: Group, seq: int, rank: int) -> str | None:
    """The line of the training code at which a rank waits in an operation; a served recorder has no frames.

    Only if it is the last that the rank has issued and its stack waits in a collective: a host runs ahead of its device.
    """
    recording, lane = situation.view.recordings.get(rank), situation.progress.lanes.get((rank, group.index))
    operation = lane.collectives.get(seq) if lane is not None else None
    if recording is None or operation is None or operation.is_done or recording.operations[-1] is not operation:
        return None
    position = situation.standings[rank].position
    own = situation.own_frame(rank) if position is not None and position.place is Place.COLLECTIVE else None
    return own.where if own is not None else None


def _collective(situation: Situation, found: DivergenceFound) -> CollectiveRef:
    signature = situation.progress.signature(found.sides.sides[0][1][0], found.group.index, found.sides.seq)
    dtype = next(iter(signature.input_dtypes), None)
    return CollectiveRef(op=signature.op, seq=found.sides.seq, sizes=signature.input_sizes, dtype=dtype, src=None, dst=None)


def _peculiarity(mismatch: Mismatch, token: Token) -> str:
    """What tells sides apart that have issued the same operation with the same sizes."""
    if mismatch is Mismatch.DTYPE and token.dtypes:
        return f" in {' and '.join(dict.fromkeys(token.dtypes))}"
    return " as its root" if mismatch is Mismatch.ROOT else ""


def _words(side: Side, peculiarity: str) -> str:
    """``all_reduce of 256 at train.py:57 step``: enough to find the line, short enough for a sentence."""
    sizes = " and ".join("x".join(map(str, size[:MAX_DIMENSIONS])) for size in side.sizes[:MAX_SIZES])
    more = f" and {len(side.sizes) - MAX_SIZES} more" if len(side.sizes) > MAX_SIZES else ""
    where = f" at {side.where.rsplit('/', 1)[-1]}" if side.where else ""
    return f"{side.op}{f' of {sizes}{more}' if sizes else ''}{peculiarity}{where}"


def _claim(found: DivergenceFound, minority: tuple[int, ...], sides: list[tuple[Side, str]], victims: tuple[int, ...]) -> str:
    place = f"at collective {found.sides.seq} of the {name_group(found.group)}"
    waits = f"{count_ranks(victims)} {wait_verb(victims)}" if victims else "the group stands still"
    if found.mismatch is Mismatch.SPLITS:
        return f"{place} all ranks together send another number of elements than they receive: the splits do not match"
    if found.then is not None:
        place = f"{place}, and they part for good at {found.then.seq}"
    told = [f"{name_ranks(side.ranks)} issued {words}" for side, words in sides]
    if not minority:
        return f"{place} {', '.join(told)}; which side is wrong cannot be told; {waits}"
    if found.edit and len(sides) == 2:
        pronoun = "it" if len(minority) == 1 else "they"
        told[1] = f"{name_ranks(minority)} {EDIT_WORDS[found.edit]}: {pronoun} issued {sides[1][1]}"
    return f"{' and '.join(told[1:])}, where {told[0]}, {place}; {waits}"


def _evidence(situation: Situation, found: DivergenceFound, seq: int, side: Side, words: str) -> EvidenceLine:
    text = f"collective {seq} of the {name_group(found.group)} is {words} on {name_ranks(side.ranks)}"
    return situation.view.line(CollectorName.FLIGHT_RECORDER, side.ranks[0], text)
