"""How late each rank comes to each collective, by its own doing: from the times in the recorders alone.

Clocks of hosts differ, so no two ranks' times are compared unless they share a host. Everywhere else the wait counts, which a
rank measures on its own clock: whoever comes last waits least. A rank that comes late because it had to wait for somebody in
another group meanwhile is a victim: what it has waited since it was here last is taken off its lateness.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pardbg.watchdog.graph.groups import Group, Groups
from pardbg.watchdog.model.calls import Call, recorded_calls, unpack_calls
from pardbg.watchdog.model.recording import Recording
from pardbg.watchdog.store.view import EvidenceView

POLL_NS = 150_000_000
"""Back ends of devices notice the end of an operation by polling ten times a second: less lateness than that is no lateness."""
MOST_OPERATIONS = 1_000_000
"""Of all ranks together; of each rank the newest are taken."""
_FEWEST_OPERATIONS = 64
MOST_DIGESTED = 131_072
"""The same of digests, each of which holds few: 2 s. In jobs so large that it would be fewer a rank than
`_FEWEST_DIGESTED`, nobody is called late."""
_FEWEST_DIGESTED = 16


@dataclass(frozen=True)
class Round:
    """One collective of a group. ``late_ns`` says how much later than the first each member came, by its own doing."""

    group: Group
    seq: int
    late_ns: Mapping[int, int]

    @property
    def excess_ns(self) -> dict[int, int]:
        """How much later each came than half of the members did: what it alone has cost them."""
        usual = sorted(self.late_ns.values())[(len(self.late_ns) - 1) // 2]
        return {rank: max(0, late - usual) for rank, late in self.late_ns.items()}

    @property
    def lead_ns(self) -> int:
        """By how much the last came after the last but one."""
        *_, before, last = sorted(self.late_ns.values())
        return last - before

    @property
    def last(self) -> int:
        """Who came last."""
        return max(self.late_ns, key=self.late_ns.__getitem__)


@dataclass(frozen=True)
class Rounds:
    """All rounds of one group that can be judged, oldest first, and the time they took, ns."""

    group: Group
    rounds: tuple[Round, ...]
    window_ns: int


def find_rounds(view: EvidenceView, groups: Groups) -> tuple[Rounds, ...]:
    """The rounds of every group of which at least two members were seen. Linear in the operations that are taken."""
    count = max(len(view.recordings), 1)
    calls = {rank: found for rank, recording in view.recordings.items() if (found := _calls_of(recording, count))}
    if len(calls) < 2:
        return ()
    tracks = {rank: _track(rank, view.recordings[rank], found, groups) for rank, found in calls.items()}
    ends = _ends_on_one_host(view, groups, tracks)
    for track in tracks.values():
        _note_waits(track, ends)
    return tuple(filter(None, (_rounds_of(group, tracks) for group in groups.groups)))


@dataclass
class _Call:
    """One collective of one rank. ``owed_ns`` is what the rank has waited elsewhere since it was in this group last."""

    group: int
    seq: int
    created_ns: int
    completed_ns: int
    is_rooted: bool
    is_polled: bool
    wait_ns: int | None = None
    owed_ns: int = 0


_Tracks = Mapping[int, Sequence[_Call]]


def _calls_of(recording: Recording, rank_count: int) -> tuple[Call, ...]:
    """From the ring, or from its digest, in a job of so many ranks."""
    if recording.summary is None:
        return recorded_calls(recording, max(_FEWEST_OPERATIONS, MOST_OPERATIONS // rank_count))
    newest = MOST_DIGESTED // rank_count
    if newest < _FEWEST_DIGESTED or recording.damage:
        return ()
    return unpack_calls(recording.summary.calls)[-newest:]


def _track(rank: int, recording: Recording, calls: Sequence[Call], groups: Groups) -> list[_Call]:
    indices = [groups.by_rank[rank, named.name] for named in recording.groups]
    return [
        _Call(indices[call.group], call.seq, call.created_ns, call.completed_ns, call.is_rooted, call.is_polled)
        for call in calls
        if call.group < len(indices)
    ]


def _ends_on_one_host(view: EvidenceView, groups: Groups, tracks: _Tracks) -> dict[tuple[int, int], int]:
    """When the collectives of groups on one host ended, by (group, seq): when their last member came."""
    local = {group.index for group in groups.groups if _is_on_one_host(view, group)}
    came: dict[tuple[int, int], list[int]] = {}
    for track in tracks.values():
        for call in track:
            if call.group in local and call.seq >= 0 and not call.completed_ns:
                came.setdefault((call.group, call.seq), []).append(call.created_ns)
    return {key: max(times) for key, times in came.items() if len(times) == len(groups.groups[key[0]].ranks)}


def _is_on_one_host(view: EvidenceView, group: Group) -> bool:
    hosts = {view.host(rank) for rank in group.ranks}
    return len(hosts) == 1 and None not in hosts


def _note_waits(track: Sequence[_Call], ends: Mapping[tuple[int, int], int]) -> None:
    """Notes of each call how long it waited, and what the rank had waited elsewhere since its last round of that group."""
    waited_ns = 0
    last_here: dict[int, int] = {}
    for call in track:
        end_ns = call.completed_ns or ends.get((call.group, call.seq))
        call.owed_ns = waited_ns - last_here.get(call.group, waited_ns)
        if end_ns is not None:
            call.wait_ns = max(0, end_ns - call.created_ns)
            waited_ns += call.wait_ns
        if call.seq >= 0:  # a transfer is no round of the group: what it waited there makes it late to the next one
            last_here[call.group] = waited_ns


def _rounds_of(group: Group, tracks: _Tracks) -> Rounds | None:
    members = [rank for rank in group.ranks if rank in tracks]
    if len(members) < 2:
        return None
    calls = {rank: {call.seq: call for call in tracks[rank] if call.group == group.index and call.seq >= 0} for rank in members}
    shared = sorted(set.intersection(*(set(found) for found in calls.values())))
    rounds = tuple(filter(None, (_round(group, seq, {rank: calls[rank][seq] for rank in members}) for seq in shared)))
    if not rounds:
        return None
    first, last = (calls[members[0]][number].created_ns for number in (rounds[0].seq, rounds[-1].seq))
    return Rounds(group, rounds, max(last - first, 1))


def _round(group: Group, seq: int, calls: Mapping[int, _Call]) -> Round | None:
    """None for what tells nothing: a root may leave before the others come."""
    if any(call.is_rooted or call.wait_ns is None for call in calls.values()):
        return None
    longest = max(call.wait_ns or 0 for call in calls.values())
    floor = POLL_NS if any(call.is_polled for call in calls.values()) else 0
    late = {rank: max(0, longest - (call.wait_ns or 0) - call.owed_ns - floor) for rank, call in calls.items()}
    return Round(group, seq, late)
