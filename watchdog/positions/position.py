"""Reading one stack: is this rank waiting in communication, and if not, what holds it on the host?"""

import re
from enum import Enum, auto

from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.evidence import Stack, StackFrame
from pardbg.watchdog.model.names import Cause
from pardbg.watchdog.positions.rules import CauseRule, find_cause

_C10D = re.compile(r"torch/distributed/(distributed_c10d|_functional_collectives|nn/functional|_tensor/|tensor/)")
_C10D_LOGGER = re.compile(r"torch/distributed/c10d_logger")
_STORE = re.compile(r"store|rendezvous|init_process_group")
_P2P = re.compile(r"^(send|recv|isend|irecv|batch_isend_irecv|send_object_list|recv_object_list)$")
_FOREIGN = re.compile(r"/(deep_ep|nvshmem|mpi4py|ucp|ucxx|ray|tensorpipe)/|torch/distributed/rpc/|torch/cuda/nccl")
_DEVICE_SYNC = re.compile(r"torch/cuda/(__init__|streams)|torch/accelerator/")
_LIBRARY = re.compile(r"/(site-packages|dist-packages|lib/python3[.\d]*)/|^<")


class Place(Enum):
    """What a stack shows its rank doing."""

    COLLECTIVE = auto()  # inside a collective or its wait
    P2P = auto()  # inside send or recv
    FOREIGN = auto()  # inside another communication library: it waits there
    DEVICE = auto()  # waiting for its device
    HOST = auto()  # anywhere else


class Position(Noun, frozen=True, kw_only=True):
    """Where the main thread is. ``frame`` is the telling frame; ``peer`` the global rank a P2P waits for, if its locals say."""

    place: Place
    frame: StackFrame
    cause: Cause | None = None
    rule: CauseRule | None = None
    peer: int | None = None
    is_sender: bool = False

    @property
    def words(self) -> str:
        """Completes "rank N is ..."."""
        return f"{self.rule.words}, {self.frame.short}" if self.rule else f"at {self.frame.short}"

    @property
    def is_definite(self) -> bool:
        """Whether the stack by itself shows what holds the rank, not just that it runs user code."""
        return self.place is Place.HOST and self.rule is not None


def read_position(stack: Stack) -> Position | None:
    """Reads the main thread of a stack; None if it has no frames."""
    thread = stack.main_thread
    if thread is None or not thread.frames:
        return None
    return _communication(thread.frames) or _host(thread.frames)


def _communication(frames: tuple[StackFrame, ...]) -> Position | None:
    for frame in frames:
        if _FOREIGN.search(frame.filename):
            return Position(place=Place.FOREIGN, frame=frame)
        if _DEVICE_SYNC.search(frame.filename) and "synchronize" in frame.name:
            return Position(place=Place.DEVICE, frame=frame)
        if _C10D.search(frame.filename):
            return None if _STORE.search(frame.name) else _operation(frame, frames)
        if not _C10D_LOGGER.search(frame.filename) and frame.line:
            return None  # a Python frame of something else lies on top
    return None


def _operation(frame: StackFrame, frames: tuple[StackFrame, ...]) -> Position:
    if not _P2P.match(frame.name):
        return Position(place=Place.COLLECTIVE, frame=frame)
    is_sender = "send" in frame.name and "irecv" not in frame.name
    known = {name: value for other in frames if _C10D.search(other.filename) for name, value in other.locals.items()}
    peer = known.get("dst" if is_sender else "src", "")
    return Position(place=Place.P2P, frame=frame, peer=int(peer) if peer.isdigit() else None, is_sender=is_sender)


def _host(frames: tuple[StackFrame, ...]) -> Position:
    own = [index for index, frame in enumerate(frames) if frame.line and not _LIBRARY.search(frame.filename)]
    found = find_cause(frames, own[0] + 1 if own else len(frames))
    if found is not None:
        rule, index = found
        return Position(place=Place.HOST, frame=_outermost(frames, index), cause=rule.cause, rule=rule)
    if own:
        return Position(place=Place.HOST, frame=frames[own[0]], cause=Cause.USER_CODE)
    return Position(place=Place.HOST, frame=frames[0])


def _outermost(frames: tuple[StackFrame, ...], index: int) -> StackFrame:
    """Of a stretch of frames in one file the outermost: `torch.save`, not its inner helper."""
    while index + 1 < len(frames) and frames[index + 1].filename == frames[index].filename:
        index += 1
    return frames[index]
