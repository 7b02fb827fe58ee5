"""The first place in a group where its members did not issue the same operation.

Hard divergences (operation, type, size) count where somebody still waits. Call sites count only together with an edit that
explains everything after them (`alignment.py`); they may lie long before the place where the ranks block.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from pardbg.watchdog.graph.alignment import find_edit
from pardbg.watchdog.graph.groups import Group
from pardbg.watchdog.graph.progress import Progress
from pardbg.watchdog.model.matching import Token, total_elements
from pardbg.watchdog.model.names import Edit, Mismatch
from pardbg.watchdog.model.operations import ALL_TO_ALL_OPS, LISTING_OPS
from pardbg.watchdog.model.recording import Signature

MIN_MAJORITY = 3  # ranks that issued something; with fewer there is no majority
CLEAR_RATIO = 2  # times as many on the one side as on all others together


@dataclass(frozen=True)
class Sides:
    """Who issued what at one sequence number: sides with equal tokens, largest first.

    ``silent`` are the members that issued nothing there or were not seen. They are no side, but they might have joined any:
    a majority counts only if it would stand against all of them as well.
    """

    seq: int
    sides: tuple[tuple[Token, tuple[int, ...]], ...]
    silent: tuple[int, ...]

    @property
    def mismatches(self) -> list[Mismatch]:
        """What the other sides differ in from the largest; a call site that was not recorded differs from none."""
        first, *others = (token for token, _ in self.sides)
        return [mismatch for token in others if (mismatch := first.differs(token))]

    @property
    def parties(self) -> frozenset[tuple[int, ...]]:
        """Who agrees with whom."""
        return frozenset(ranks for _, ranks in self.sides)

    @property
    def minority(self) -> tuple[int, ...]:
        """The ranks a clear majority stands against, or none."""
        largest, *rest = (len(ranks) for _, ranks in self.sides)
        against = sum(rest)
        if largest + against < MIN_MAJORITY or largest < CLEAR_RATIO * (against + len(self.silent)):
            return ()
        return tuple(sorted(rank for _, ranks in self.sides[1:] for rank in ranks))


@dataclass(frozen=True)
class DivergenceFound:
    """A divergence of a group: where, who against whom, what differs, and the edit that explains what followed.

    ``then``: the next one at which operations no longer fit together, where this one differs in its call sites only.
    """

    group: Group
    sides: Sides
    mismatch: Mismatch
    edit: Edit | None = None
    then: Sides | None = None


class TokenTable:
    """The tokens of one group, by sequence number and rank. Built on demand, for the groups in which somebody waits.

    Ranks that have issued the same are one class: large groups have few.
    """

    def __init__(self, progress: Progress, group: Group) -> None:
        unseen = set(range(progress.view.world_size or 0)) - set(progress.view.recordings) if group.is_inferred else set()
        self._members = tuple(sorted({*group.ranks, *unseen}))  # whoever was not seen may belong to a group nobody names
        self._open: set[int] = set()
        self._tokens: list[dict[int, Token]] = []
        self._ranks: list[list[int]] = []
        self._class_of: dict[int, int] = {}
        classes: dict[object, int] = {}
        for rank in group.ranks:
            lane = progress.lanes.get((rank, group.index))
            if lane is None or not lane.collectives:
                continue
            recording = progress.view.recordings[rank]
            if recording.damage:
                continue  # a field that was lost is no difference
            self._open.update(seq for seq, operation in lane.collectives.items() if not operation.is_done)
            own = progress.tokens.of(recording, lane.collectives)
            shared = progress.view.shared_entries.get((rank, group.name))
            likeness = (id(shared), tuple(own), tuple(map(id, own.values())))
            number = classes.setdefault(likeness, len(classes))
            if number == len(self._tokens):
                more = {} if shared is None else progress.tokens.of(shared, {other.seq: other for other in shared.operations})
                self._tokens.append({**more, **own})
                self._ranks.append([])
            self._ranks[number].append(rank)
            self._class_of[rank] = number

    @property
    def ranks(self) -> tuple[int, ...]:
        """The members with at least one recorded collective."""
        return tuple(self._class_of)

    def sequences(self) -> list[int]:
        """The sequence numbers that at least two ranks recorded, ascending."""
        counts: dict[int, int] = {}
        for tokens, ranks in zip(self._tokens, self._ranks, strict=True):
            for seq in tokens:
                counts[seq] = counts.get(seq, 0) + len(ranks)
        return sorted(seq for seq, count in counts.items() if count > 1)

    def is_split(self, seq: int, *, hard: bool) -> bool:
        """Whether ranks issued different things."""
        found = {id(token.hard if hard else token) for tokens in self._tokens if (token := tokens.get(seq)) is not None}
        if len(found) == 1:
            return False
        return len(_telling({token.hard if hard else token for token in self.tokens(seq)})) > 1

    def tokens(self, seq: int) -> set[Token]:
        """What was issued there."""
        return {token for tokens in self._tokens if (token := tokens.get(seq)) is not None}

    def ops(self, seq: int) -> set[str]:
        """The operations that were issued there."""
        return {token.op for token in self.tokens(seq)}

    def sides(self, seq: int, *, hard: bool) -> Sides:
        """Groups the ranks by what they issued; ``hard`` ignores call sites."""
        by_token: dict[Token, list[int]] = {}
        for tokens, ranks in zip(self._tokens, self._ranks, strict=True):
            token = tokens.get(seq)
            if token is not None:
                by_token.setdefault(token.hard if hard else token, []).extend(ranks)
        ordered = sorted(
            ((token, sorted(by_token[token])) for token in _telling(by_token)), key=lambda side: (-len(side[1]), side[1])
        )
        spoken = {rank for _, ranks in ordered for rank in ranks}
        silent = tuple(rank for rank in self._members if rank not in spoken)
        return Sides(seq, tuple((token, tuple(ranks)) for token, ranks in ordered), silent)

    def with_sites(self, sides: Sides) -> Sides:
        """The same sides, with the call site of each side's first rank."""
        return Sides(sides.seq, tuple((self._of(r[0])[sides.seq], r) for _, r in sides.sides), sides.silent)

    def is_open(self, seq: int) -> bool:
        """Whether somebody's operation is unfinished."""
        return seq in self._open

    def one_of_each_class(self, ranks: Iterable[int]) -> list[int]:
        """The first of those that have issued the same."""
        return list({self._class_of[rank]: rank for rank in sorted(ranks, reverse=True)}.values())

    def since(self, rank: int, seq: int) -> list[Token]:
        """What the rank issued from ``seq`` on, without gaps."""
        tokens, issued = self._of(rank), []
        while (token := tokens.get(seq)) is not None:
            issued.append(token)
            seq += 1
        return issued

    def until(self, rank: int, seq: int) -> list[Token]:
        """What the rank issued before ``seq``, oldest first, without gaps."""
        tokens, issued = self._of(rank), []
        while (token := tokens.get(seq - 1)) is not None:
            issued.append(token)
            seq -= 1
        return issued[::-1]

    def _of(self, rank: int) -> dict[int, Token]:
        return self._tokens[self._class_of[rank]]


def _telling(tokens: Collection[Token]) -> list[Token]:
    """The tokens without those that may be the same as another one, as far as they were recorded."""
    whole = {token.op for token in tokens if not token.is_partial}
    return [token for token in tokens if not (token.is_partial and token.op in whole)]


def find_divergence(progress: Progress, group: Group) -> DivergenceFound | None:
    """Finds the earliest divergence of a group: shifted call sites first, since they lie before what they cause."""
    table = TokenTable(progress, group)
    if len(table.ranks) < MIN_MAJORITY - 1:
        return None
    sequences = table.sequences()
    hard = next((seq for seq in sequences if table.is_open(seq) and table.is_split(seq, hard=True)), None)
    for seq in sequences:
        if not table.is_split(seq, hard=False):
            continue
        sides = table.sides(seq, hard=False)
        if seq == hard or sides.mismatches:
            edit = _edit_of(table, sides)
            if seq == hard:
                return _before(table, group, hard, edit) or _describe(table, group, table.sides(seq, hard=True), edit)
            if edit is not None:
                return _describe(table, group, sides, edit)
    return _uneven_splits(progress, table, group) or _several_roots(progress, table, group)


def _before(table: TokenTable, group: Group, hard: int, edit: Edit | None) -> DivergenceFound | None:
    """Where the ranks of a hard divergence had parted already, on operations of their own that still happened to fit together.

    What is always called from different places, as by the root of a broadcast, does not count. The job must have been here
    before, so that it would have been seen.
    """
    then, seq = table.sides(hard, hard=True), hard
    while (sides := table.sides(seq - 1, hard=False)).parties == then.parties and {*sides.mismatches} == {Mismatch.CALL_SITE}:
        seq -= 1
    if edit is not None or seq == hard:
        return None
    history = [table.tokens(past) for past in table.sequences() if past < seq]
    is_usual = any(table.tokens(seq) <= tokens for tokens in history)
    has_been_here = {token.hard for tokens in history for token in tokens} & {token for token, _ in then.sides}
    if is_usual or not has_been_here:
        return None
    return DivergenceFound(group, table.sides(seq, hard=False), Mismatch.CALL_SITE, then=then)


def _edit_of(table: TokenTable, sides: Sides) -> Edit | None:
    """The one edit that explains every rank of the smaller sides, seen from the largest side."""
    if len(sides.sides) > MIN_MAJORITY:
        return None  # rank-dependent call sites, not a rank that went its own way
    reference = sides.sides[0][1][0]
    others, history = table.since(reference, sides.seq), table.until(reference, sides.seq)
    deviating = table.one_of_each_class(rank for _, ranks in sides.sides[1:] for rank in ranks)
    edits = {find_edit(table.since(rank, sides.seq), others, history) for rank in deviating}
    return edits.pop() if len(edits) == 1 else None


def _describe(table: TokenTable, group: Group, sides: Sides, edit: Edit | None) -> DivergenceFound:
    mismatch = min(sides.mismatches, key=list(Mismatch).index)
    return DivergenceFound(group, table.with_sites(sides), mismatch, edit if sides.minority else None)


def _uneven_splits(progress: Progress, table: TokenTable, group: Group) -> DivergenceFound | None:
    """An open all-to-all in which all members together send more, or less, than they receive."""
    for seq in table.sequences():
        if not table.is_open(seq) or not table.ops(seq) <= ALL_TO_ALL_OPS or not progress.is_whole(group.index):
            continue
        sides = table.sides(seq, hard=True)
        if not sides.silent:
            signatures = {rank: progress.signature(rank, group.index, seq) for rank in table.ranks}
            if sum(total_elements(it.input_sizes) - total_elements(it.output_sizes) for it in signatures.values()):
                return DivergenceFound(group, _by_sizes(table.with_sites(sides), signatures), Mismatch.SPLITS)
    return None


def _several_roots(progress: Progress, table: TokenTable, group: Group) -> DivergenceFound | None:
    """An open gather or scatter to which more than one rank came as its root: with a tensor for every member.

    Torch refuses these of all others. NCCL's recorder writes those of a scatter where outputs stand.
    """
    for seq in table.sequences():
        if not table.is_open(seq) or not table.ops(seq) <= LISTING_OPS:
            continue
        sides = table.sides(seq, hard=True)
        signatures = {rank: progress.signature(rank, group.index, seq) for _, ranks in sides.sides for rank in ranks}
        roots = [rank for rank, it in signatures.items() if max(len(it.input_sizes), len(it.output_sizes)) > 1]
        if len(roots) > 1:
            alone = tuple((sides.sides[0][0], (rank,)) for rank in roots)
            return DivergenceFound(group, table.with_sites(Sides(seq, alone, sides.silent)), Mismatch.ROOT)
    return None


def _by_sizes(sides: Sides, signatures: dict[int, Signature]) -> Sides:
    """Tells the ranks apart by what they send and receive."""
    token = sides.sides[0][0]
    alike: dict[object, list[int]] = {}
    for rank, signature in signatures.items():
        alike.setdefault((signature.input_sizes, signature.output_sizes), []).append(rank)
    ordered = sorted(alike.values(), key=lambda ranks: (-len(ranks), ranks))
    return Sides(sides.seq, tuple((token, tuple(ranks)) for ranks in ordered), sides.silent)
