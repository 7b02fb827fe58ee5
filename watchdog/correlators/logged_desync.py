"""Ranks that wait in different operations under one number, as their watchdogs or detail mode say; without any recorder."""

from collections.abc import Iterable, Iterator

from pardbg.watchdog.correlators.log_words import MAX_LINES, are_logs_alone, log_line, name_log_group
from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.correlators.wording import name_ranks
from pardbg.watchdog.graph.log_facts import LogFact
from pardbg.watchdog.graph.log_waits import LogSide, LogSplit, find_split
from pardbg.watchdog.model.log_event import (
    CollectiveTimeout,
    Fingerprint,
    FingerprintMismatch,
    GroupName,
    NcclWarning,
    Trouble,
)
from pardbg.watchdog.model.names import Confidence, Kind, Mismatch
from pardbg.watchdog.model.report import CollectiveRef, Divergence, EvidenceLine, Finding, GroupRef, Side, Subject
from pardbg.watchdog.store.seen_ranks import told_world_size

_WORLD = GroupName(name="0", desc="default_pg")
_PAIR = 2
_BRING_DUMPS = "Only one operation a rank is known: bring flight-recorder dumps to see where they first differ."


def correlate(situation: Situation) -> Iterable[Finding]:
    """One finding a group that diverged; what detail mode says counts more than what watchdogs do."""
    if not are_logs_alone(situation) or situation.own_failures:
        return
    compared, claims = _compared(situation), situation.logs.of_type(FingerprintMismatch)
    if compared is not None:
        yield _describe(situation, compared, claims)
        return
    if claims:
        yield _nameless(claims)
        return
    splits = [split for group, waits in situation.log_waits.items() if (split := find_split(group, waits)) is not None]
    for split in splits:
        yield _describe(situation, split, situation.logs.of_type(CollectiveTimeout))
    warned = [fact for fact, event in situation.logs.of_type(NcclWarning) if event.trouble is Trouble.MISMATCH]
    if warned and not splits:
        yield _warned_by_nccl(warned)


def _compared(situation: Situation) -> LogSplit | None:
    """The split that detail mode tells; its ranks are global only where those that sign the lines say the same."""
    claims = situation.logs.of_type(FingerprintMismatch)
    if not claims or any(fact.rank not in {None, event.own.group_rank} for fact, event in claims):
        return None
    prints = {side.group_rank: side for _, event in claims for side in (event.own, event.other) if side is not None}
    mismatch, size = _differs(list(prints.values())), told_world_size(situation.view)
    numbers = {side.seq for side in prints.values()}
    if (mismatch is None and len(numbers) < _PAIR) or (size is not None and max(prints) >= size) or None in numbers:
        return None
    alike: dict[tuple[str, str, str, int | None], list[int]] = {}
    for rank, side in sorted(prints.items()):
        alike.setdefault((side.op, side.dtype, side.shape, side.seq if len(numbers) > 1 else None), []).append(rank)
    sides = (LogSide(tuple(ranks), key[0], _elements(key[2]), key[3]) for key, ranks in alike.items())
    ordered = tuple(sorted(sides, key=lambda side: (-len(side.ranks), side.ranks)))
    is_signed = any(fact.rank is not None for fact, _ in claims)
    return LogSplit(
        _WORLD if is_signed or size == len(prints) else GroupName(),
        min(seq for seq in numbers if seq is not None),
        ordered,
        mismatch,
        (),
    )


def _warned_by_nccl(warned: list[LogFact]) -> Finding:
    """NCCL has met a transfer that does not fit: it names no rank, or one that is near."""
    return Finding(
        kind=Kind.DESYNC,
        confidence=Confidence.SUGGESTED,
        claim="ranks issue different collectives in one communicator, as NCCL warns; which ones is not told",
        evidence=tuple(map(log_line, warned[:MAX_LINES])),
        advice=(_BRING_DUMPS,),
    )


def _nameless(claims: list[tuple[LogFact, FingerprintMismatch]]) -> Finding:
    """The ranks are those of some group; old releases of torch tell of one only that the others run something else."""
    first = claims[0][1]
    told = [_print_words(side) for side in (first.own, first.other) if side is not None]
    return Finding(
        kind=Kind.DESYNC,
        confidence=Confidence.SUGGESTED,
        claim=(
            f"ranks of a group were about to run different collectives, by torch's detail mode: {' and '.join(told)}, by their "
            f"numbers in it{'' if first.other is not None else '; what the others ran is not told'}"
        ),
        evidence=tuple(log_line(fact) for fact, _ in claims[:MAX_LINES]),
        advice=(_BRING_DUMPS,),
    )


def _print_words(side: Fingerprint) -> str:
    return f"rank {side.group_rank} {_words(LogSide((side.group_rank,), side.op, _elements(side.shape), side.seq))}"


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
    world_size = told_world_size(situation.view)
    minority = split.minority(world_size)
    heard = {rank for side in split.sides for rank in side.ranks}
    silent = [rank for rank in range(world_size or 0) if rank not in heard and rank not in split.elsewhere]
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
        advice=(_BRING_DUMPS,),
    )


def _chosen(subjects: dict[int, Subject], ranks: Iterable[int]) -> tuple[Subject, ...]:
    return tuple(subjects[rank] for rank in ranks)


def _group_ref(situation: Situation, split: LogSplit) -> GroupRef | None:
    """The world, of which alone all members are known."""
    size = told_world_size(situation.view)
    if not split.group.is_world or size is None:
        return None
    return GroupRef(name=split.group.name, desc=split.group.desc, axis=None, ranks=tuple(range(size)))


def _side(side: LogSide) -> Side:
    return Side(ranks=side.ranks, op=side.op, sizes=((side.numel,),) if side.numel is not None else (), where=None)


def _words(side: LogSide) -> str:
    op = side.op if side.seq is None else f"{side.op} {side.seq}"
    return op if side.numel is None else f"{op} of {side.numel} elements"


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
