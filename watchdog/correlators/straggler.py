"""The job moves, and ranks, a host or a pipeline stage make the others wait in round after round of collectives."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from pardbg.watchdog.correlators.situation import NS_PER_S, Situation
from pardbg.watchdog.correlators.slow_words import SIGN_ADVICE, sign_lines
from pardbg.watchdog.correlators.wording import name_group, name_ranks
from pardbg.watchdog.graph.axes import PIPELINE
from pardbg.watchdog.graph.lateness import Late, find_late
from pardbg.watchdog.graph.slow_signs import ON_DEVICE, SlowSign
from pardbg.watchdog.model.names import Cause, CollectorName, Confidence, Kind, Scope
from pardbg.watchdog.model.report import Cost, EvidenceLine, Finding, Subject
from pardbg.watchdog.positions.position import Place, Position

CAUSES = {
    Cause.DATA_LOADING: Cause.DATA_LOADING,
    Cause.GC: Cause.GC,
    Cause.BUSY_LOOP: Cause.COMPUTE,
    Cause.NATIVE_CODE: Cause.COMPUTE,
    Cause.USER_CODE: Cause.COMPUTE,
}
"""What a stack on the host says, in the words that a straggler's cause may have."""
_MOST_CULPRITS = 8


@dataclass(frozen=True)
class _Straggling:
    """Everything that says of these ranks - one, or all of a host or stage - that they are late; the costliest first."""

    scope: Scope
    ranks: tuple[int, ...]
    seen: tuple[Late, ...]

    @property
    def worst(self) -> Late:
        return self.seen[0]


def correlate(situation: Situation) -> Iterable[Finding]:
    """One finding for all ranks that are late together; without any, one for lateness that goes round. None in a hang."""
    if situation.is_stuck:
        return
    late = [found for rounds in situation.rounds if (found := find_late(rounds)) is not None]
    named = [found for found in late if found.ranks]
    if named:
        yield from (_describe(situation, found) for found in _together(situation, named))
    elif late:
        yield _rotating(max(late, key=lambda found: found.share))


def stragglers_without_reason(situation: Situation) -> tuple[int, ...]:
    """The ranks that come late, if no stack says of any of them what keeps it there."""
    if not situation.motion:
        return ()
    culprits = [subject for found in correlate(situation) for subject in found.culprits if found.cause is None]
    return tuple(sorted({rank for subject in culprits for rank in subject.ranks}))


def _together(situation: Situation, late: Sequence[Late]) -> Iterator[_Straggling]:
    """Ranks of one host or stage are one straggler; all others are one each."""
    left = {rank for found in late for rank in found.ranks}
    for scope, sets in ((Scope.HOST, situation.ranks_by_host), (Scope.STAGE, situation.ranks_by_stage)):
        for whole in map(set, sets.values()) if len(sets) > 1 else ():
            if len(whole) > 1 and whole <= left:
                yield _gather(scope, whole, late)
                left -= whole
    for rank in sorted(left):
        yield _gather(Scope.RANK, {rank}, late)


def _gather(scope: Scope, ranks: set[int], late: Sequence[Late]) -> _Straggling:
    seen = sorted((found for found in late if ranks & set(found.ranks)), key=lambda found: -found.share)
    return _Straggling(scope, tuple(sorted(ranks)), tuple(seen))


def _describe(situation: Situation, found: _Straggling) -> Finding:
    worst, scope = found.worst, found.scope
    position = _position(situation, found.ranks)
    sign = None if scope is Scope.STAGE else _sign(situation, found.ranks, position)
    subject = _subject(situation, found, position, sign)
    cause = Cause.PIPELINE_STAGE if scope is Scope.STAGE else sign.cause if sign is not None else _cause(position)
    who = {Scope.HOST: f"host {subject.host}", Scope.STAGE: f"pipeline stage {subject.coords.get(PIPELINE)}"}
    doing = f"; meanwhile it is {position.words}" if position is not None else ""
    doing = f"; its {sign.words}" if sign is not None else doing
    claim = (
        f"{who.get(scope, name_ranks(found.ranks))} comes {worst.usual_ns / NS_PER_S:.2f} s after the others to collectives of "
        f"the {name_group(worst.group)}, in {worst.count} rounds of {worst.first_seq} to {worst.last_seq}: "
        f"{worst.share:.0%} of the time is lost{doing}"
    )
    victims = {rank for late in found.seen for rank in late.group.ranks} - set(found.ranks)
    return Finding(
        kind=Kind.STRAGGLER,
        cause=cause,
        confidence=Confidence.ESTABLISHED if position is not None and cause and not sign else Confidence.SUPPORTED,
        culprits=(subject,),
        victims=tuple(sorted(victims)),
        group=situation.group_ref(worst.group),
        cost=Cost.of_share(worst.share),
        claim=claim,
        evidence=(*_lines(situation, found), *sign_lines(situation, found.ranks)),
        advice=_advice(cause, scope),
    )


def _subject(situation: Situation, found: _Straggling, position: Position | None, sign: SlowSign | None) -> Subject:
    reason = f", its {sign.words}" if sign else f", {position.words}" if position else ""
    why = f"it is late in {found.worst.count} rounds{reason}"
    one = situation.subject(found.ranks[0], why)
    if found.scope is Scope.HOST and one.host is not None:
        return Subject.of_host(one.host, "all its ranks are late", found.ranks)
    if found.scope is Scope.STAGE:
        stage = {PIPELINE: one.coords[PIPELINE]}
        return Subject(scope=Scope.STAGE, ranks=found.ranks, coords=stage, why="all its ranks are late")
    return replace(one, scope=Scope.DEVICE) if sign is not None and sign.cause in ON_DEVICE else one


def _sign(situation: Situation, ranks: Sequence[int], position: Position | None) -> SlowSign | None:
    """What makes all of them slow, unless a stack has a definite reason: a loader, a collection of garbage."""
    if position is not None and position.is_definite and _cause(position) in {Cause.DATA_LOADING, Cause.GC}:
        return None
    signs = [situation.slow_signs.get(rank) for rank in ranks]
    first = signs[0]
    return first if first is not None and all(sign is not None and sign.cause is first.cause for sign in signs) else None


def _position(situation: Situation, ranks: Sequence[int]) -> Position | None:
    """Where they were on the host while others waited: what was seen most often, a definite reason before user code."""
    seen = [
        position
        for rank in ranks[:_MOST_CULPRITS]
        for position in situation.standings[rank].positions
        if position.place is Place.HOST and (position.frame is not None or position.rule is not None)
    ]
    definite = [position for position in seen if position.is_definite]
    return max(definite or seen, key=lambda position: sum(other.spot == position.spot for other in seen), default=None)


def _cause(position: Position | None) -> Cause | None:
    """What a stack on the host shows; else the reason is not known."""
    return CAUSES.get(position.cause) if position is not None and position.cause is not None else None


def _lines(situation: Situation, found: _Straggling) -> Iterator[EvidenceLine]:
    for late in found.seen[:3]:
        others = [rank for rank in late.group.ranks if rank not in late.ranks]
        text = (
            f"{name_ranks(late.ranks)} came last to {late.count} rounds of the {name_group(late.group)}, "
            f"and waited there {late.usual_ns / NS_PER_S:.2f} s less than {name_ranks(others)}"
        )
        yield situation.view.line(CollectorName.FLIGHT_RECORDER, late.ranks[0], text)


def _advice(cause: Cause | None, scope: Scope) -> tuple[str, ...]:
    if scope is Scope.STAGE:
        return ("Move layers from this stage to others, or give the loss and the embedding a stage of their own.",)
    if scope is Scope.HOST and cause not in SIGN_ADVICE:
        return ("Compare the host with another: clocks, CPU quota, other jobs, storage; leave it out of the next start.",)
    if cause is Cause.DATA_LOADING:
        return ("Look at the storage and the loader workers of this rank: more workers, prefetching, or shards of one size.",)
    if cause is Cause.GC:
        return ("Collect garbage at the same step on all ranks: gc.disable() and gc.collect() every N steps.",)
    if cause in SIGN_ADVICE:
        return (SIGN_ADVICE[cause],)
    return ("Compare what this rank does between two collectives with another: `py-spy dump` of both, a few times.",)


def _rotating(late: Late) -> Finding:
    claim = (
        f"in {late.count} rounds of the {name_group(late.group)} one rank comes {late.usual_ns / NS_PER_S:.2f} s after all "
        f"others, but always another: {late.share:.0%} of the time is lost, and no rank is to blame"
    )
    return Finding(
        kind=Kind.STRAGGLER,
        cause=Cause.ROTATING,
        confidence=Confidence.SUPPORTED,
        victims=(),
        cost=Cost.of_share(late.share),
        claim=claim,
        advice=(
            "Look for what all ranks share: garbage collection at different steps, batches of unequal length, one storage.",
        ),
    )
