"""What each rank is doing, from whatever was seen of it: its recorder, its process, its own stack."""

from collections.abc import Container, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from pardbg.watchdog.graph.fronts import Front
from pardbg.watchdog.model.short_names import holds_function
from pardbg.watchdog.model.summary import Function
from pardbg.watchdog.positions.functions import communicating_functions
from pardbg.watchdog.positions.position import Place, Position
from pardbg.watchdog.positions.reading import read_position
from pardbg.watchdog.positions.rules import CauseRule
from pardbg.watchdog.store.view import EvidenceView


class Stance(Enum):
    """What a rank is doing."""

    WAITING = auto()  # an operation of it is outstanding
    IDLE = auto()  # its recorder shows nothing outstanding
    HOST = auto()  # its own stack shows it outside communication
    HIDDEN = auto()  # in communication that its recorder does not show
    ENDED = auto()  # its process has ended
    UNSEEN = auto()  # nothing usable was seen of it


@dataclass(frozen=True)
class Standing:
    """One rank's stance. ``positions`` are read from its stacks and process, oldest sample first.

    ``is_recorded``: its flight recorder was read, and is no old picture of it.
    """

    rank: int
    stance: Stance
    fronts: tuple[Front, ...] = ()
    positions: tuple[Position, ...] = ()
    is_recorded: bool = False

    @property
    def position(self) -> Position | None:
        """The newest position."""
        return self.positions[-1] if self.positions else None

    @property
    def is_still(self) -> bool:
        """Whether two samples show it at the same place."""
        return len(self.positions) > 1 and self.positions[0].spot == self.positions[-1].spot

    @property
    def is_foreign(self) -> bool:
        """Whether its stack is inside of another communication library."""
        return self.position is not None and self.position.place is Place.FOREIGN

    @property
    def can_be_root(self) -> bool:
        """Whether others can wait for this rank while it waits for nobody."""
        return self.stance in {Stance.IDLE, Stance.HOST, Stance.ENDED}


def find_standings(
    view: EvidenceView, fronts: dict[int, tuple[Front, ...]], rules: Sequence[CauseRule], behind: Container[int] = ()
) -> dict[int, Standing]:
    """The standing of every rank of the job, seen or not. The dumps of the ranks ``behind`` are too old to say."""
    positions = {rank: _read_positions(view, rank, rules) for rank in sorted({*view.stacks, *view.looks})}
    waiting = (found[-1] for rank, found in positions.items() if found and fronts.get(rank))
    functions = communicating_functions(view, waiting) if positions else frozenset()
    ranks = sorted({*range(view.world_size or 0), *fronts, *positions, *view.processes})
    return {
        rank: Standing(
            rank,
            _last_stance(fronts.get(rank, ()), positions[rank][-1])
            if rank in view.interrupted_ranks and positions.get(rank)
            else _stance(
                rank, view, fronts.get(rank, ()), _proven(positions.get(rank, ()), functions), is_behind=rank in behind
            ),
            fronts.get(rank, ()),
            positions.get(rank, ()),
            is_recorded=rank in view.recordings and rank not in behind,
        )
        for rank in ranks
    }


def _read_positions(view: EvidenceView, rank: int, rules: Sequence[CauseRule]) -> tuple[Position, ...]:
    native = view.native_stacks.get(rank)
    found = (read_position(stack, process, native, rules) for stack, process in view.moments(rank))
    return tuple(position for position in found if position is not None)


def _proven(positions: tuple[Position, ...], functions: frozenset[Function]) -> Position | None:
    """The newest position, unless it is a line of the training code that may just as well wait in native code."""
    if not positions:
        return None
    newest = positions[-1]
    if newest.place is not Place.HOST or newest.is_definite:
        return newest
    if not functions or newest.frame is None:
        return None
    return None if holds_function(functions, newest.frame.function) else newest


def _last_stance(fronts: tuple[Front, ...], position: Position) -> Stance:
    """Of a rank that somebody else ended while it stood there.

    A line of the training code may wait in native code: that it does not, only its source can say.
    """
    if position.place is not Place.HOST:
        return Stance.WAITING if fronts else Stance.HIDDEN
    is_known = position.is_definite or (position.frame is not None and position.frame.source is not None)
    return Stance.HOST if is_known else Stance.WAITING if fronts else Stance.UNSEEN


def _stance(rank: int, view: EvidenceView, fronts: tuple[Front, ...], position: Position | None, *, is_behind: bool) -> Stance:
    if rank in view.ended_ranks:
        return Stance.WAITING if fronts else Stance.ENDED
    if position is not None and position.is_definite:
        return Stance.HOST  # even with work queued on its device, this thread will issue nothing more until it comes back
    if fronts:
        return Stance.WAITING
    if position is not None and position.place is Place.HOST:
        return Stance.HOST
    recording = view.recordings.get(rank)
    is_whole = recording is not None and not recording.damage and not is_behind
    is_hiding = recording is not None and bool(recording.unrecorded_p2p)
    if position is not None:
        return Stance.HOST if position.is_timing and is_whole and not is_hiding else Stance.HIDDEN
    return Stance.UNSEEN if not is_whole else Stance.HIDDEN if is_hiding else Stance.IDLE
