"""Rules of the diagnosis, each broken on purpose, and the scenario that must go wrong then."""

from math import prod
from typing import Any, NamedTuple

from pardbg.collectors.parsing import flight_recorder
from pardbg.watchdog.correlators import comm_stuck, cycles, dead_rank, device_stuck
from pardbg.watchdog.graph import divergence, progress, standing
from pardbg.watchdog.graph.divergence import Sides
from pardbg.watchdog.graph.meetings import Room
from pardbg.watchdog.graph.progress import Arrival, Progress
from pardbg.watchdog.graph.standing import Stance, Standing
from pardbg.watchdog.judge import precedence
from pardbg.watchdog.model import matching
from pardbg.watchdog.model.names import Edit
from pardbg.watchdog.sim.recipe import Recipe


class Change(NamedTuple):
    """What is replaced in the code."""

    owner: Any
    attribute: str
    replacement: Any


class Mutant(NamedTuple):
    """A broken rule: what it says, what takes its place, and the evidence that shows the difference."""

    rule: str
    changes: tuple[Change, ...]
    shown_by: Recipe


def _ignoring_the_silent(self: Sides) -> tuple[int, ...]:
    largest, *rest = (len(ranks) for _, ranks in self.sides)
    return tuple(rank for _, ranks in self.sides[1:] for rank in ranks) if largest >= 2 * sum(rest) else ()


def _any_split(self: Sides) -> tuple[int, ...]:
    return tuple(rank for _, ranks in self.sides[1:] for rank in ranks)


def _not_recorded_is_absent(self: Progress, rank: int, group: int, seq: int) -> Arrival:
    lane = self.lanes.get((rank, group))
    operation = lane.collectives.get(seq) if lane else None
    if operation is None:
        return Arrival.ABSENT
    return Arrival.COMPLETED if operation.is_done else Arrival.ARRIVED


def _whoever_is_seen(self: Standing) -> bool:
    return self.stance in {Stance.IDLE, Stance.HOST, Stance.ENDED, Stance.UNSEEN}


def _by_state_only(entry: Any, *, on_device: bool) -> bool:
    del on_device
    return bool(entry.state == "completed" or entry.time_discovered_completed_ns)


def _sizes_of_everything(signature: Any) -> tuple[int, ...]:
    return tuple(prod(size) for size in signature.input_sizes + signature.output_sizes)


def _everyone_votes(situation: Any, one: Any, other: Any) -> Sides:
    sides = [(cycles._token(situation, meeting), meeting.waiting) for meeting in (one, other) if meeting.waiting]
    return Sides(0, tuple(sorted(sides, key=lambda side: (-len(side[1]), side[1]))), ())


def _all_that_ended(situation: Any, _roots: Any) -> list[int]:
    return sorted(situation.view.ended_ranks)


MUTANTS = (
    Mutant(
        "one of two sides is no majority",
        (Change(Sides, "minority", property(_any_split)),),
        Recipe(fault="desync-two-ranks"),
    ),
    Mutant(
        "a majority must stand against all who were not seen as well",
        (Change(Sides, "minority", property(_ignoring_the_silent)),),
        Recipe(fault="desync-even-split", backend="gloo", missing=(11,)),
    ),
    Mutant(
        "a rank without a recorder is never missing on that ground",
        (Change(Room, "_place_unrecorded", lambda *_: "absent"), Change(Standing, "can_be_root", property(_whoever_is_seen))),
        Recipe(fault="recorder-off"),
    ),
    Mutant(
        "an operation that is not in the ring is not recorded, not missing",
        (Change(Progress, "arrival", _not_recorded_is_absent),),
        Recipe(fault="device-stuck", is_active_only=True),
    ),
    Mutant(
        "an operation that the ring lost while it was open is still open",
        (Change(progress._Counters, "completed", lambda *_: None),),
        Recipe(fault="ring-wrapped"),
    ),
    Mutant(
        "members who stand at something earlier are waited for",
        (Change(Room, "_stands_elsewhere", lambda *_: False),),
        Recipe(fault="order-inversion-enqueued"),
    ),
    Mutant(
        "the earliest divergence may lie before the place where the ranks block",
        (Change(divergence, "find_edit", lambda *_: None),),
        Recipe(fault="desync-extra"),
    ),
    Mutant(
        "call sites may differ legally",
        (Change(divergence, "find_edit", lambda *_: Edit.EXTRA),),
        Recipe(fault="branch-call-sites-missing"),
    ),
    Mutant(
        "on gloo retired means finished",
        (Change(flight_recorder, "is_marked_done", _by_state_only),),
        Recipe(fault="missing-participant", backend="gloo"),
    ),
    Mutant(
        "counters settle what coalesced entries leave open",
        (Change(flight_recorder, "idle_groups", lambda _: frozenset()),),
        Recipe(fault="healthy-coalesced-pipeline", is_active_only=True),
    ),
    Mutant(
        "sizes of an all-to-all differ legally",
        (Change(matching, "_elements", _sizes_of_everything),),
        Recipe(fault="uneven-all-to-all-missing", layout="tp=1,pp=1,dp=16,ep=8"),
    ),
    Mutant(
        "what every other member has completed is a matter of the device",
        (Change(device_stuck, "is_device_stuck", lambda *_: False),),
        Recipe(fault="device-stuck"),
    ),
    Mutant(
        "where all have entered and none finishes nobody is to blame",
        (Change(comm_stuck, "is_stuck", lambda *_: False),),
        Recipe(fault="comm-stuck"),
    ),
    Mutant(
        "only ranks in both groups vote on their order",
        (Change(cycles, "_votes", _everyone_votes),),
        Recipe(fault="order-inversion"),
    ),
    Mutant(
        "who has issued another operation at a number has not come to it in another order",
        (Change(cycles, "_has_diverged", lambda *_: False),),
        Recipe(fault="desync-skipped-before-transfer"),
    ),
    Mutant(
        "members of a group that has completed nothing are not known on gloo",
        (Change(Progress, "is_whole", lambda *_: True),),
        Recipe(fault="missing-late-group", backend="gloo"),
    ),
    Mutant(
        "of those that ended only who went first is to blame",
        (Change(dead_rank, "_went_first", _all_that_ended),),
        Recipe(fault="dead-rank"),
    ),
    Mutant(
        "kinds have an order",
        (Change(precedence, "ORDER", tuple(reversed(precedence.ORDER))),),
        Recipe(fault="two-faults-device-and-host"),
    ),
    Mutant(
        "a rank inside another communication library waits there",
        (Change(standing, "_stance", lambda *_, **__: Stance.HOST),),
        Recipe(fault="foreign-communicator"),
    ),
)
