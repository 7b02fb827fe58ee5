"""Meetings: one operation of one group (or one pair of ranks), and who of its members is there.

A rank waits in a meeting; a meeting waits for the members that are absent, and for those that have issued the operation but
stand at something earlier. Ranks and meetings together form the wait-for graph, with one node per operation instead of an
edge per pair of ranks.
"""

from dataclasses import dataclass, field

from pardbg.watchdog.graph.fronts import LOST, Front
from pardbg.watchdog.graph.gatherings import Gatherings
from pardbg.watchdog.graph.groups import Group
from pardbg.watchdog.graph.keys import FROM_STACKS, UNKNOWN_PEER, MeetingKey
from pardbg.watchdog.graph.progress import Arrival, Progress
from pardbg.watchdog.graph.standing import Stance, Standing
from pardbg.watchdog.model.recording import Operation
from pardbg.watchdog.model.summary import KEPT_P2P
from pardbg.watchdog.positions.position import Place

_PLACES = ("waiting", "queued", "absent", "completed", "unknown", "inside")
_PLACE_OF = {Arrival.ABSENT: "absent", Arrival.ENTERED: "inside", Arrival.COMPLETED: "completed"}


@dataclass(frozen=True)
class Meeting:
    """Who is where. All sets are sorted tuples of global ranks; together they are the members.

    ``vague`` are those that wait in communication without telling in which: they may be here, and are no roots. ``inside`` are
    those that have entered, as another's end of it proves, and of which nothing says whether they have finished.
    """

    key: MeetingKey
    waiting: tuple[int, ...] = ()
    queued: tuple[int, ...] = ()
    absent: tuple[int, ...] = ()
    completed: tuple[int, ...] = ()
    unknown: tuple[int, ...] = ()
    vague: tuple[int, ...] = ()
    inside: tuple[int, ...] = ()

    @property
    def needs(self) -> tuple[int, ...]:
        """The ranks this meeting waits for."""
        return (*self.absent, *self.queued)

    @property
    def is_full(self) -> bool:
        """Whether every member has entered the operation, as far as can be known."""
        return not (self.absent or self.queued or self.unknown or self.vague)

    @property
    def entered(self) -> tuple[int, ...]:
        """The members that have issued the operation and not finished it."""
        return tuple(sorted((*self.waiting, *self.queued)))


@dataclass(frozen=True)
class Room:
    """What is needed to see who is at a meeting: standings, progress, and how many fronts of each rank count."""

    progress: Progress
    standings: dict[int, Standing]
    depth: dict[int, int]
    gatherings: Gatherings = field(default_factory=Gatherings)

    def fronts(self, rank: int) -> tuple[Front, ...]:
        """The fronts of a rank that count: the oldest one, unless alternates are being tried.

        Of operations that the ring has lost it is not known which is the oldest: all of them count.
        """
        standing = self.standings[rank]
        lost_count = sum(front.operation.record_id == LOST for front in standing.fronts)
        depth = max(self.depth.get(rank, 1), lost_count)
        return standing.fronts[:depth] if standing.stance is Stance.WAITING else ()

    def keys(self, rank: int) -> tuple[MeetingKey, ...]:
        """The meetings a rank waits in."""
        standing = self.standings[rank]
        if standing.stance is Stance.HIDDEN:
            gathering = self.gatherings.by_rank.get(rank)
            if gathering is not None:
                return (gathering,)
            return tuple(key for key in stack_keys(standing) if {key.src, key.dst} <= self.standings.keys())
        return tuple(key for front in self.fronts(rank) for key in self.front_keys(front))

    def front_keys(self, front: Front) -> tuple[MeetingKey, ...]:
        """The meetings of one front: one for a collective, one per pair for (batched) P2P."""
        group = self.progress.groups.groups[front.group]
        return tuple(dict.fromkeys(self._key(front.rank, group, operation) for operation in front.operations))

    def _key(self, rank: int, group: Group, operation: Operation) -> MeetingKey:
        if not operation.is_p2p:
            return MeetingKey(group.index, operation.seq)
        src, dst = self.ends(rank, group, operation)
        return MeetingKey(group.index, None, src, dst)

    def ends(self, rank: int, group: Group, operation: Operation) -> tuple[int, int]:
        """Source and destination of a P2P operation as global ranks, `UNKNOWN_PEER` where the recorder does not say."""
        signature = self.progress.view.recordings[rank].signatures[operation.signature]
        known = len(group.ranks)
        src, dst = (
            group.ranks[end] if end is not None and end < known and not group.is_inferred else UNKNOWN_PEER
            for end in (signature.src, signature.dst)
        )
        return src, dst

    def meet(self, key: MeetingKey) -> Meeting:
        """Sees who is at the meeting."""
        if key.is_gathering:
            return self._meet_gathering(key)
        return self._meet_pair(key) if key.is_p2p else self._meet_group(key)

    def _meet_gathering(self, key: MeetingKey) -> Meeting:
        """Where members are not known for certain, whoever is on the host or has ended may be the one that is missing."""
        gathering = self.gatherings.by_key[key]
        members = frozenset(self.progress.groups.groups[key.group].ranks) if gathering.has_members else frozenset()
        asked = members if gathering.has_members and not gathering.is_inferred else frozenset(self.standings)
        places: dict[str, list[int]] = {"absent": [], "unknown": [], "vague": []}
        for rank in sorted(asked.intersection(self.standings).difference(gathering.waiting)):
            standing = self.standings[rank]
            if standing.can_be_root:
                places["absent"].append(rank)
            elif standing.stance is Stance.UNSEEN:
                places["unknown"].append(rank)
            elif _may_be_anywhere(standing):
                places["vague"].append(rank)
            elif rank in members:
                places["absent"].append(rank)  # it waits elsewhere
        return Meeting(key, waiting=gathering.waiting, **{place: tuple(ranks) for place, ranks in places.items()})

    def _meet_group(self, key: MeetingKey) -> Meeting:
        places: dict[str, list[int]] = {place: [] for place in _PLACES}
        for rank in self.progress.groups.groups[key.group].ranks:
            places[self._place(rank, key)].append(rank)
        return Meeting(key, **{place: tuple(sorted(ranks)) for place, ranks in places.items()})

    def _place(self, rank: int, key: MeetingKey) -> str:
        arrival = self.progress.arrival(rank, key.group, key.seq or 0)
        if arrival is Arrival.ARRIVED:
            return "queued" if self._stands_elsewhere(rank, key) else "waiting"
        if arrival is Arrival.UNKNOWN:
            return self._place_unrecorded(rank)
        return _PLACE_OF[arrival]

    def _place_unrecorded(self, rank: int) -> str:
        """Without a recorder only the rank's own stack or its process can say that it is not here."""
        standing = self.standings.get(rank)
        return "absent" if standing is not None and standing.stance in {Stance.HOST, Stance.ENDED} else "unknown"

    def _stands_elsewhere(self, rank: int, key: MeetingKey) -> bool:
        fronts = self.fronts(rank)
        return bool(fronts) and all(key not in self.front_keys(front) for front in fronts)

    def _meet_pair(self, key: MeetingKey) -> Meeting:
        here: dict[str, list[int]] = {place: [] for place in _PLACES}
        for rank in sorted({key.src, key.dst} - {UNKNOWN_PEER}):
            here[self._place_end(rank, key)].append(rank)
        return Meeting(key, **{place: tuple(ranks) for place, ranks in here.items()})

    def _place_end(self, rank: int, key: MeetingKey) -> str:
        if key.group == FROM_STACKS:
            return self._place_by_stack(rank, key)
        if rank not in self.progress.view.recordings or rank in self.progress.behind:
            return self._place_unrecorded(rank)
        if key in self.keys(rank):
            return "waiting"
        role = "send" if rank == key.src else "recv"
        group = self.progress.groups.groups[key.group]
        lane = self.progress.lanes.get((rank, key.group))
        for operation in lane.p2p if lane else ():
            if operation.is_done or self.ends(rank, group, operation) != (key.src, key.dst):
                continue
            if self._role(rank, operation) == role:
                return "queued" if self._stands_elsewhere(rank, key) else "waiting"
        return "completed" if self._is_ahead(rank, key) else "absent"

    def _role(self, rank: int, operation: Operation) -> str:
        op = self.progress.view.recordings[rank].signatures[operation.signature].op
        return "send" if "send" in op else "recv"

    def _is_ahead(self, rank: int, key: MeetingKey) -> bool:
        """Whether this end has finished the transfer the other end still waits for, by counting both rings from the start."""
        other = key.dst if rank == key.src else key.src
        recordings = self.progress.view.recordings
        rings = [recordings.get(rank), recordings.get(other)]
        if any(ring is None or ring.damage or not ring.operations or ring.first_record_id > 0 for ring in rings):
            return False
        lanes = [self.progress.lanes.get((end, key.group)) for end in (rank, other)]
        are_digests = any(ring is not None and ring.summary is not None for ring in rings)
        if are_digests and any(lane is not None and len(lane.p2p) >= KEPT_P2P for lane in lanes):
            return False  # some were left out
        return self._transfers(rank, key, finished=True) > self._transfers(other, key, finished=True)

    def _transfers(self, rank: int, key: MeetingKey, *, finished: bool) -> int:
        lane = self.progress.lanes.get((rank, key.group))
        group = self.progress.groups.groups[key.group]
        return sum(
            operation.is_done is finished and self.ends(rank, group, operation) == (key.src, key.dst)
            for operation in (lane.p2p if lane else ())
        )

    def _place_by_stack(self, rank: int, key: MeetingKey) -> str:
        standing = self.standings.get(rank)
        if standing is None or standing.stance is Stance.UNSEEN or _may_be_anywhere(standing):
            return "unknown"
        return "waiting" if key in stack_keys(standing) else "absent"


def _may_be_anywhere(standing: Standing) -> bool:
    """Whether a rank waits in communication and its stack does not tell in which: ``work.wait()``, a batch of transfers."""
    position = standing.position
    if standing.stance is not Stance.HIDDEN or standing.is_recorded or position is None:
        return False
    if position.place is Place.P2P:
        return position.peer is None
    return position.place is Place.DEVICE or (position.place is Place.COLLECTIVE and not position.op)


def stack_keys(standing: Standing) -> tuple[MeetingKey, ...]:
    """The meeting that a rank's own stack shows: a P2P whose peer its locals name (gloo records no P2P)."""
    position = standing.position
    if position is None or position.peer is None:
        return ()
    ends = (standing.rank, position.peer) if position.is_sender else (position.peer, standing.rank)
    return (MeetingKey(FROM_STACKS, None, *ends),)
