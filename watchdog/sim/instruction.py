"""What a simulated rank can be told to do: launch operations, wait, block, vanish."""

from dataclasses import dataclass, replace
from enum import Enum

from pardbg.watchdog.model.recording import Frame
from pardbg.watchdog.sim.layout import Group

Sizes = tuple[tuple[int, ...], ...]


class Op(str, Enum):
    """Operations by their plain names; what a recorder calls them depends on the back end."""

    ALL_REDUCE = "all_reduce"
    ALL_GATHER = "all_gather"
    REDUCE_SCATTER = "reduce_scatter"
    ALL_TO_ALL = "all_to_all"
    BROADCAST = "broadcast"
    BARRIER = "barrier"
    SEND = "send"
    RECV = "recv"

    @property
    def is_p2p(self) -> bool:
        """Whether it concerns two ranks only."""
        return self in (Op.SEND, Op.RECV)


@dataclass(frozen=True, eq=False)
class CallSite:
    """The Python stack of a call, innermost frame first."""

    frames: tuple[Frame, ...]


@dataclass(frozen=True, eq=False)
class Operation:
    """One collective, or one end of a P2P transfer. ``peer`` and ``root`` are group ranks."""

    group: Group
    op: Op
    site: CallSite
    input_sizes: Sizes = ()
    output_sizes: Sizes = ()
    dtype: str = "BFloat16"
    peer: int | None = None
    root: int | None = None

    @property
    def contract(self) -> tuple[object, ...]:
        """What all members must agree on. The sizes of an all_to_all may differ from rank to rank, within the law."""
        sizes = () if self.op is Op.ALL_TO_ALL else (self.input_sizes, self.output_sizes)
        return (self.op, self.dtype, self.root, *sizes)


class Fate(Enum):
    """What a launch's device makes of it."""

    NORMAL = "normal"
    NEVER_DONE = "never done"  # the communicator is broken: it takes no part and never completes
    STUCK_HERE = "stuck here"  # the others get what they need; this device does not come back from it
    NOT_REPORTED = "not reported"  # done, but this device's completion events are lost


@dataclass(frozen=True, eq=False)
class Launch:
    """Operations launched together: one, or the members of a coalesced P2P group.

    An asynchronous launch runs on its communicator's own stream; later launches do not wait for it until a `Join`.
    """

    operations: tuple[Operation, ...]
    is_async: bool = False
    is_coalesced: bool = False
    label: str = ""
    fate: Fate = Fate.NORMAL

    @property
    def first(self) -> Operation:
        """The operation that speaks for the launch."""
        return self.operations[0]

    def with_fate(self, fate: Fate) -> "Launch":
        """The same launch on a device that treats it so."""
        return replace(self, fate=fate)


@dataclass(frozen=True, eq=False)
class Join:
    """The stream waits for every asynchronous launch so far; the host does not."""


@dataclass(frozen=True, eq=False)
class Synchronize:
    """The host waits until the stream is done (`loss.item()`)."""

    site: CallSite


@dataclass(frozen=True, eq=False)
class HostBlock:
    """The host never returns from here; what it has launched before goes on."""

    site: CallSite


@dataclass(frozen=True, eq=False)
class Vanish:
    """The process ends, after what it launched is done."""


@dataclass(frozen=True, eq=False)
class Mark:
    """A named place of the program, for faults to aim at. Does nothing."""

    name: str


Instruction = Launch | Join | Synchronize | HostBlock | Vanish | Mark
Program = list[Instruction]


@dataclass(frozen=True)
class Style:
    """Legal peculiarities of a training program."""

    p2p_is_coalesced: bool = False
    root_has_own_call_site: bool = False
