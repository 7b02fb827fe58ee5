"""How far each rank is in each group, and whether it has entered a given operation.

"Not recorded" is never "missing": an operation older than the ring's window was overwritten, a dump may hold unfinished
entries only, and a truncated file lost its newest ones. Then the counters decide, and where they are silent the answer is
``UNKNOWN``.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, auto

from pardbg.watchdog.graph.groups import Groups
from pardbg.watchdog.graph.proof import proven_entries
from pardbg.watchdog.graph.tokens import Tokens
from pardbg.watchdog.model.operations import DEVICE_BACKENDS, ROOTED_OPS
from pardbg.watchdog.model.recording import GroupProgress, Operation, Recording, Signature
from pardbg.watchdog.model.summary import Block, Summary
from pardbg.watchdog.store.view import EvidenceView


class Arrival(Enum):
    """Whether a rank has entered an operation."""

    ABSENT = auto()  # it has not issued it
    ARRIVED = auto()  # issued, and not finished on this rank
    COMPLETED = auto()  # finished on this rank
    ENTERED = auto()  # issued, as its end on another rank proves; whether it is finished on this one is not known
    UNKNOWN = auto()  # this rank's evidence does not say


@dataclass
class Lane:
    """One rank's operations in one group.

    ``newest`` is the last collective issued, ``completed`` the last one finished; None where that is not known. ``left_out``
    are the blocks of a digest: what of them is not among the ``collectives`` was in the ring all the same.
    """

    collectives: dict[int, Operation] = field(default_factory=dict)
    p2p: list[Operation] = field(default_factory=list)
    newest: int | None = None
    completed: int | None = None
    left_out: tuple[Block, ...] = ()

    @property
    def first_lost(self) -> int | None:
        """The oldest unfinished collective, if the ring has already overwritten it."""
        if self.completed is None or self.newest is None or self.completed >= self.newest:
            return None
        seq = self.completed + 1
        is_recorded = seq in self.collectives or any(block.first_seq <= seq < block.end_seq for block in self.left_out)
        return None if is_recorded else seq


@dataclass(frozen=True)
class Progress:
    """The lanes of all ranks, by (rank, group index).

    ``limits``: per group the last collective that can have succeeded, where a member ended before it issued more.
    ``proven``: per group the newest collective that all members have entered, since one has finished it. ``behind``: the ranks
    whose dumps do not show that much, with the group where it shows; such a dump is older than what the others' tell.
    """

    view: EvidenceView
    groups: Groups
    lanes: dict[tuple[int, int], Lane]
    limits: dict[int, int] = field(default_factory=dict)
    tokens: Tokens = field(default_factory=Tokens)
    proven: dict[int, int] = field(default_factory=dict)
    behind: dict[int, int] = field(default_factory=dict)

    def operations(self, rank: int) -> Iterator[tuple[int, Operation]]:
        """The operations of a rank with their group index, oldest first."""
        recording = self.view.recordings[rank]
        indices = [self.groups.by_rank[rank, named.name] for named in recording.groups]
        return ((indices[operation.group], operation) for operation in recording.operations)

    def signature(self, rank: int, group: int, seq: int) -> Signature:
        """What the rank issued as collective ``seq`` of the group. It must be in the ring, or in that of a rank like it."""
        operation = self.lanes[rank, group].collectives.get(seq)
        if operation is not None:
            return self.view.recordings[rank].signatures[operation.signature]
        shared = self.view.shared_entries[rank, self.groups.groups[group].name]
        return next(shared.signatures[other.signature] for other in shared.operations if other.seq == seq)

    def op(self, rank: int, group: int, seq: int) -> str | None:
        """The bare name of collective ``seq`` of the group as the rank issued it; None if it is not in its ring."""
        lane = self.lanes.get((rank, group))
        operation = lane.collectives.get(seq) if lane is not None else None
        return self.view.recordings[rank].signatures[operation.signature].op if operation is not None else None

    def arrival(self, rank: int, group: int, seq: int) -> Arrival:
        """Whether the rank has entered collective ``seq`` of the group: by its own dump, and by what that of others proves."""
        told, proven = self.recorded_arrival(rank, group, seq), self.proven.get(group, 0)
        is_shown = told is Arrival.COMPLETED or (told is Arrival.ARRIVED and rank not in self.behind)
        if is_shown or (seq > proven and rank not in self.behind):
            return told
        return Arrival.UNKNOWN if seq > proven else Arrival.ENTERED if seq == proven else Arrival.COMPLETED

    def recorded_arrival(self, rank: int, group: int, seq: int) -> Arrival:
        """The same by its own dump alone."""
        recording = self.view.recordings.get(rank)
        if recording is None:
            return Arrival.UNKNOWN
        lane = self.lanes.get((rank, group))
        if lane is not None:
            operation = lane.collectives.get(seq)
            if operation is not None:
                return Arrival.COMPLETED if self.is_finished(rank, group, operation) else Arrival.ARRIVED
            if lane.newest is not None and seq > lane.newest:
                return Arrival.ABSENT
            if lane.newest is not None:
                return Arrival.COMPLETED if lane.completed is None or seq <= lane.completed else Arrival.ARRIVED
        if recording.configs and all(config.name != self.groups.groups[group].name for config in recording.configs):
            return Arrival.ABSENT  # a group is configured at its first operation, and this rank has not come to it
        return Arrival.UNKNOWN if _may_have_lost(recording, seq) else Arrival.ABSENT

    def is_finished(self, rank: int, group: int, operation: Operation) -> bool:
        """Whether the operation is over and can have succeeded: gloo also retires what ended with an error."""
        if not operation.is_done or operation.is_p2p or operation.seq <= self.limits.get(group, operation.seq):
            return operation.is_done
        signature = self.view.recordings[rank].signatures[operation.signature]
        return signature.backend in DEVICE_BACKENDS or signature.op in ROOTED_OPS

    def is_whole(self, group: int) -> bool:
        """Whether all members are known: they were named; or every rank was seen, and these completed a collective."""
        found = self.groups.groups[group]
        if not found.is_inferred:
            return True
        return len(self.view.recordings) == self.view.world_size and any(
            operation.is_done and self.view.recordings[rank].signatures[operation.signature].op not in ROOTED_OPS
            for rank in found.ranks
            if (rank, group) in self.lanes
            for operation in self.lanes[rank, group].collectives.values()
        )


def trace_progress(view: EvidenceView, groups: Groups) -> Progress:
    """Sorts every operation into its lane and works out how far each lane reached. Linear in the number of operations."""
    lanes: dict[tuple[int, int], Lane] = {}
    progress = Progress(view, groups, lanes)
    for rank, recording in view.recordings.items():
        _sort_operations(rank, recording, progress)
        if recording.summary is not None:
            _note_left_out(progress, rank, recording.summary)
    counters = _Counters(progress)
    ended = view.ended_ranks
    members = ((rank, group.index) for group in groups.groups for rank in group.ranks if rank in view.recordings)
    for member in members:
        newest = _newest_collective(*member, progress, counters)
        if newest is None:
            continue
        lane = lanes.setdefault(member, Lane())
        lane.newest, lane.completed = newest, counters.completed(*member)
        if member[0] in ended:
            progress.limits[member[1]] = min(newest, progress.limits.get(member[1], newest))
    issued = {member: lane.collectives for member, lane in lanes.items()}
    progress.proven.update(proven_entries(view.recordings, groups.groups, issued))
    _note_behind(progress)
    return progress


def _note_behind(progress: Progress) -> None:
    recordings = progress.view.recordings
    for group, seq in progress.proven.items():
        for rank in progress.groups.groups[group].ranks:
            lane = progress.lanes.get((rank, group))
            if lane is not None and lane.newest is not None and lane.newest >= seq:
                continue  # nearly all
            if rank in recordings and progress.recorded_arrival(rank, group, seq) is Arrival.ABSENT:
                progress.behind.setdefault(rank, group)


def _sort_operations(rank: int, recording: Recording, progress: Progress) -> None:
    """The hot loop of large jobs."""
    indices = [progress.groups.by_rank[rank, named.name] for named in recording.groups]
    own: dict[int, Lane] = {}
    lanes = [own.setdefault(index, Lane()) for index in indices]
    for operation in recording.operations:
        if operation.is_p2p:
            lanes[operation.group].p2p.append(operation)
        else:
            lanes[operation.group].collectives[operation.seq] = operation
    for index, lane in own.items():
        if lane.collectives or lane.p2p:
            progress.lanes[rank, index] = lane


def _note_left_out(progress: Progress, rank: int, summary: Summary) -> None:
    blocks: dict[str, list[Block]] = {}
    groups = progress.view.recordings[rank].groups
    for block in summary.blocks:
        blocks.setdefault(groups[block.group].name, []).append(block)
    for name, found in blocks.items():
        progress.lanes[rank, progress.groups.by_rank[rank, name]].left_out = tuple(found)


def _newest_collective(rank: int, group: int, progress: Progress, counters: "_Counters") -> int | None:
    lane = progress.lanes.get((rank, group))
    recorded = max(lane.collectives) if lane is not None and lane.collectives else None
    if recorded is not None and not progress.view.recordings[rank].damage:
        return recorded  # the ring always holds its newest entries
    counted = counters.enqueued(rank, group)
    return recorded if counted is None else max(counted, recorded or 0)


def _may_have_lost(recording: Recording, seq: int) -> bool:
    """Whether an operation that is neither recorded nor counted may have been issued all the same."""
    if recording.damage:
        return True
    unmapped = [counter for counter in recording.progress if counter.local_id not in recording.local_ids]
    if recording.progress:
        return any(counter.last_enqueued >= seq for counter in unmapped)
    return bool(recording.operations) and recording.first_record_id > 0


class _Counters:
    """The counters of groups without entries in the ring. Their keys are private numbers of the process.

    A rank's own entries tell which number is which group. Where the ring has none, the number is borrowed from the other
    members of the group: creation order is the same on them. The counter counts *work*, so it says nothing of collectives
    in a group that also has P2P.
    """

    def __init__(self, progress: Progress) -> None:
        self._view = progress.view
        self._groups = progress.groups
        self._with_p2p = {group for (_, group), lane in progress.lanes.items() if lane.p2p}
        self._numbers: dict[int, set[str]] = {}
        self._own: dict[int, dict[str, str]] = {}
        self._on_device: dict[int, bool] = {}  # by identity: most ranks share their tables
        for rank, recording in self._view.recordings.items():
            for local_id, name in recording.local_ids.items():
                group = self._groups.by_rank.get((rank, name))
                if group is not None:
                    numbers = self._numbers.get(group)
                    if numbers is None:
                        numbers = self._numbers[group] = set()
                    numbers.add(local_id)

    def enqueued(self, rank: int, group: int) -> int | None:
        """The last collective this rank issued in the group (0: none yet), or None if the counters do not say."""
        counter = self._find(rank, group)
        return None if counter is None else max(counter.last_enqueued, 0)

    def completed(self, rank: int, group: int) -> int | None:
        """The last collective this rank finished in the group. Devices only: gloo's threads finish out of order."""
        counter = self._find(rank, group)
        if counter is None or not self._is_all_on_device(self._view.recordings[rank].signatures):
            return None
        return max(counter.last_completed, 0)

    def _is_all_on_device(self, signatures: tuple[Signature, ...]) -> bool:
        known = self._on_device.get(id(signatures))
        if known is None:
            known = self._on_device[id(signatures)] = all(it.backend in DEVICE_BACKENDS for it in signatures)
        return known

    def _find(self, rank: int, group: int) -> GroupProgress | None:
        if group in self._with_p2p:
            return None
        recording = self._view.recordings[rank]
        if rank not in self._own:
            self._own[rank] = {name: local_id for local_id, name in recording.local_ids.items()}
        local_id = self._own[rank].get(self._groups.groups[group].name) or self._borrow(recording, group)
        for counter in recording.progress:
            if counter.local_id == local_id:
                return counter
        return None

    def _borrow(self, recording: Recording, group: int) -> str | None:
        numbers = self._numbers.get(group)
        if numbers is None or len(numbers) != 1:
            return None
        (local_id,) = numbers
        return None if local_id in recording.local_ids else local_id
