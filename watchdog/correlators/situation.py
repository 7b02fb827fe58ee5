"""The situation of a job: everything derived from its evidence once, for all correlators to read."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property

from pardbg.watchdog.graph.axes import axis_of, coordinates
from pardbg.watchdog.graph.divergence import DivergenceFound, find_divergence
from pardbg.watchdog.graph.fronts import LOST, find_fronts
from pardbg.watchdog.graph.groups import Group, Groups, find_groups
from pardbg.watchdog.graph.meetings import FROM_STACKS, UNKNOWN_PEER, Meeting, MeetingKey, Room
from pardbg.watchdog.graph.progress import Progress, trace_progress
from pardbg.watchdog.graph.standing import Stance, Standing, find_standings
from pardbg.watchdog.graph.waits import WaitGraph, explore
from pardbg.watchdog.model.names import Scope
from pardbg.watchdog.model.operations import DEVICE_BACKENDS
from pardbg.watchdog.model.recording import Operation, Recording
from pardbg.watchdog.model.report import CollectiveRef, Device, GroupRef, Subject
from pardbg.watchdog.store.view import EvidenceView

NS_PER_S = 1_000_000_000


@dataclass(frozen=True)
class Situation:
    """A job at one moment. ``graph`` says who waits for whom; the rest is what it was made from."""

    view: EvidenceView
    groups: Groups
    progress: Progress
    standings: dict[int, Standing]
    graph: WaitGraph

    @classmethod
    def of(cls, view: EvidenceView) -> "Situation":
        """Derives the situation from the evidence. Linear in operations and ranks."""
        groups = find_groups(view)
        progress = trace_progress(view, groups)
        standings = find_standings(view, find_fronts(progress))
        return cls(view, groups, progress, standings, explore(Room(progress, standings, {})))

    @cached_property
    def divergences(self) -> tuple[DivergenceFound, ...]:
        """The earliest divergence of every group in which somebody waits - or which cannot have survived one (gloo)."""
        concerned = {key.group for key in self.graph.meetings if not key.is_p2p}
        for (rank, group), lane in self.progress.lanes.items():
            if lane.collectives and not self.is_on_device(rank):
                concerned.add(group)
        found = (find_divergence(self.progress, self.groups.groups[index]) for index in sorted(concerned))
        return tuple(divergence for divergence in found if divergence is not None)

    @cached_property
    def waiting_ranks(self) -> tuple[int, ...]:
        """All ranks with an operation outstanding."""
        return tuple(rank for rank, standing in self.standings.items() if standing.fronts)

    def stance(self, rank: int) -> Stance:
        """What a rank is doing."""
        return self.standings[rank].stance

    def is_on_device(self, rank: int) -> bool:
        """Whether this rank's operations run on an accelerator."""
        recording = self.view.recordings.get(rank)
        return recording is not None and any(signature.backend in DEVICE_BACKENDS for signature in recording.signatures)

    def subject(self, rank: int, why: str) -> Subject:
        """Names a rank, with its host, process and place in the layout."""
        process = self.view.processes.get(rank)
        return Subject(
            scope=Scope.RANK,
            rank=rank,
            ranks=(rank,),
            host=self.view.host(rank),
            pid=process.pid if process else None,
            device=Device(uuid=process.gpu_uuid, pci_bus_id=process.pci_bus_id) if process and process.gpu_uuid else None,
            coords=self._coords.get(rank, {}),
            why=why,
        )

    def group_ref(self, group: Group) -> GroupRef:
        """A group as reports name it."""
        return GroupRef(name=group.name, desc=group.desc, axis=axis_of(group), ranks=group.ranks)

    def meeting_group(self, key: MeetingKey) -> GroupRef | None:
        """The group of a meeting; None where only a stack shows it."""
        return None if key.group == FROM_STACKS else self.group_ref(self.groups.groups[key.group])

    def collective_ref(self, meeting: Meeting) -> CollectiveRef:
        """The operation of a meeting, as its first member issued it."""
        key = meeting.key
        found = self.operation_at(meeting)
        ends = {"src": _known(key.src), "dst": _known(key.dst)}
        if found is None:
            return CollectiveRef(op="send" if key.is_p2p else "unknown", seq=key.seq, sizes=(), dtype=None, **ends)
        recording, operation = found
        signature = recording.signatures[operation.signature]
        dtype = next(iter(signature.input_dtypes), None)
        return CollectiveRef(op=signature.op, seq=key.seq, sizes=signature.input_sizes, dtype=dtype, **ends)

    def operation_at(self, meeting: Meeting) -> tuple[Recording, Operation] | None:
        """The recorded operation that the first waiting member of a meeting stands at."""
        for rank in meeting.entered or meeting.completed:
            for front in self.standings[rank].fronts:
                if front.operation.record_id != LOST and meeting.key in self.graph.room.front_keys(front):
                    return self.view.recordings[rank], front.operation
        return None

    def waiting_since_ns(self, meeting: Meeting) -> int | None:
        """When the first member entered the meeting, epoch ns."""
        times = [
            front.operation.created_ns
            for rank in meeting.entered
            for front in self.standings[rank].fronts
            if front.operation.created_ns and meeting.key in self.graph.room.front_keys(front)
        ]
        return min(times, default=None)

    def waiting_s(self, meeting: Meeting) -> float | None:
        """How long the meeting has waited, if it is known when the evidence was taken."""
        return self.seconds_since(self.waiting_since_ns(meeting))

    def seconds_since(self, since_ns: int | None) -> float | None:
        """Seconds from a moment (epoch ns) to the moment the evidence was taken, if both are known."""
        sampled_at = self.view.job.sampled_at
        if since_ns is None or sampled_at is None:
            return None
        try:
            sampled = datetime.fromisoformat(sampled_at.replace("Z", "+00:00"))
        except ValueError:
            return None
        if sampled.tzinfo is None:
            sampled = sampled.replace(tzinfo=timezone.utc)
        return max(round(sampled.timestamp() - since_ns / NS_PER_S, 1), 0.0)

    @cached_property
    def _coords(self) -> dict[int, dict[str, int]]:
        return coordinates(self.groups)


def _known(rank: int) -> int | None:
    return None if rank == UNKNOWN_PEER else rank


def before_first_operation(situation: Situation, ranks: Iterable[int]) -> bool:
    """Whether none of these ranks has completed anything in any group yet, as far as they recorded anything at all."""
    seen = [situation.view.recordings[rank] for rank in ranks if rank in situation.view.recordings]
    return bool(seen) and not any(
        any(operation.is_done for operation in recording.operations)
        or any(counter.last_completed > 0 for counter in recording.progress)
        for recording in seen
    )
