"""Ranks that wait in different operations under one number, as their watchdogs or detail mode say; without any recorder."""

from collections.abc import Iterable, Iterator

from pardbg.watchdog.correlators.log_words import MAX_LINES, are_logs_alone, log_line, name_log_group
from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.correlators.wording import name_ranks
from pardbg.watchdog.graph.log_facts import LogFact
from pardbg.watchdog.graph.log_waits import LogSide, LogSplit, find_split
from pardbg.watchdog.model.log_event import CollectiveTimeout, Fingerprint, FingerprintMismatch, GroupName
from pardbg.watchdog.model.names import Confidence, Kind, Mismatch
from pardbg.watchdog.model.report import CollectiveRef, Divergence, EvidenceLine, Finding, GroupRef, Side, Subject

_WORLD = GroupName(name="0", desc="default_pg")


def correlate(situation: Situation) -> Iterable[Finding]:
    """One finding a group that diverged; what detail mode says counts more than what watchdogs do."""
    if not are_logs_alone(situation) or situation.own_failures:
        return
    compared = _compared(situation)
    if compared is not None:
        yield _describe(situation, compared, situation.logs.of_type(FingerprintMismatch))
        return
    for group, waits in situation.log_waits.items():
        split = find_split(group, waits)
        if split is not None:
            yield _describe(situation, split, situation.logs.of_type(CollectiveTimeout))


def _compared(situation: Situation) -> LogSplit | None:
    """The split that detail mode tells; its ranks are global only where those that sign the lines say the same."""
    claims = situation.logs.of_type(FingerprintMismatch)
    if not claims or any(fact.rank not in {None, event.own.group_rank} for fact, event in claims):
        return None
    prints = {side.group_rank: side for _, event in claims for side in (event.own, event.other)}
    seqs = {side.seq for side in prints.values()}
    mismatch = _differs(list(prints.values()))
    if mismatch is None or max(prints) >= (situation.view.world_size or 0) or None in seqs:
        return None
    alike: dict[tuple[str, str, str], list[int]] = {}
    for rank, side in sorted(prints.items()):
        alike.setdefault((side.op, side.dtype, side.shape), []).append(rank)
    sides = (LogSide(tuple(ranks), key[0], _elements(key[2])) for key, ranks in alike.items())
    ordered = tuple(sorted(sides, key=lambda side: (-len(side.ranks), side.ranks)))
    return LogSplit(_WORLD, min(seq for seq in seqs if seq is not None), ordered, mismatch, ())


def _differs(prints: list[Fingerprint]) -> Mismatch | None:
    """What differs first, in the contract's order."""
    if len({side.op for side in prints}) > 1:
        return Mismatch.OP
    if len({side.dtype for side in prints}) > 1:
        return Mismatch.DTYPE
    return Mismatch.SIZE if len({side.shape for side in prints}) > 1 else None


def _elements(shape: str) -> int | None:
    sizes = [int(part) for part in shape.strip("[]").split(",") if part.strip().isdecimal()]
    total = 1
    for size in sizes:
        total *= size
    return total if sizes else None


def _describe(situation: Situation, split: LogSplit, told: Iterable[tuple[LogFact, object]]) -> Finding:
    world_size = situation.view.world_size or 0
    minority = split.minority(world_size)
    heard = {rank for side in split.sides for rank in side.ranks}
    silent = [rank for rank in range(world_size) if rank not in heard and rank not in split.elsewhere]
    subjects = {rank: situation.subject(rank, f"waits in {_words(side)}") for side in split.sides for rank in side.ranks}
    first = split.sides[0]
    sizes = ((first.numel,),) if first.numel is not None else ()
    return Finding(
        kind=Kind.DESYNC,
        confidence=Confidence.SUGGESTED if silent or not minority else Confidence.SUPPORTED,
        culprits=_chosen(subjects, minority),
        candidates=() if minority else _chosen(subjects, sorted(heard)),
        victims=tuple(sorted(heard - set(minority))) if minority else tuple(split.elsewhere),
        group=_group_ref(situation, split),
        collective=CollectiveRef(op=first.op, seq=split.seq, sizes=sizes, dtype=None, src=None, dst=None),
        mismatch=split.mismatch,
        first_divergence=Divergence(group=split.group.name, seq=split.seq, sides=tuple(map(_side, split.sides))),
        claim=_claim(split, minority, silent if split.group.is_world else []),
        evidence=tuple(_lines(told, heard)),
        advice=("Only one operation a rank is known: bring flight-recorder dumps to see where they first differ.",),
    )


def _chosen(subjects: dict[int, Subject], ranks: Iterable[int]) -> tuple[Subject, ...]:
    return tuple(subjects[rank] for rank in ranks)


def _group_ref(situation: Situation, split: LogSplit) -> GroupRef | None:
    """The world, of which alone all members are known."""
    if not split.group.is_world:
        return None
    return GroupRef(name=split.group.name, desc=split.group.desc, axis=None, ranks=tuple(range(situation.view.world_size or 0)))


def _side(side: LogSide) -> Side:
    return Side(ranks=side.ranks, op=side.op, sizes=((side.numel,),) if side.numel is not None else (), where=None)


def _words(side: LogSide) -> str:
    return side.op if side.numel is None else f"{side.op} of {side.numel} elements"


def _claim(split: LogSplit, minority: tuple[int, ...], silent: list[int]) -> str:
    told = ", ".join(f"{name_ranks(side.ranks)} in {_words(side)}" for side in split.sides)
    further = f"; {name_ranks(split.elsewhere)} elsewhere" if split.elsewhere else ""
    unheard = f"; the logs of {name_ranks(silent)} say nothing" if silent else ""
    doubt = "" if minority else "; which side is wrong cannot be told"
    return (
        f"the ranks of {name_log_group(split.group)} diverged at or before collective {split.seq}, in which they wait: "
        f"{told}{further}{unheard}{doubt}"
    )


def _lines(told: Iterable[tuple[LogFact, object]], ranks: set[int]) -> Iterator[EvidenceLine]:
    facts = [fact for fact, _ in told if fact.rank in ranks or fact.rank is None]
    yield from map(log_line, facts[:MAX_LINES])
