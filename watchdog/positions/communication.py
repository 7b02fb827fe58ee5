"""Does a stack wait in communication? In which operation, of which group, for which peer?

Waiting in gloo is waiting for a futex, in native code: `work.wait()` shows nothing but a line of the training code, and
backward with DDP's hooks nothing but autograd. There the source line and the system call decide together.
"""

import re
from collections.abc import Sequence
from itertools import takewhile

from pardbg.watchdog.model.evidence import StackFrame
from pardbg.watchdog.model.process import ProcessSample
from pardbg.watchdog.model.short_names import is_standard, plain_name
from pardbg.watchdog.positions.position import GroupSign, Place, Position

_C10D = re.compile(
    r"torch/distributed/(?!checkpoint/|elastic/|launcher/|rpc/|run\.py|debug|flight_recorder)|torch/nn/parallel/distributed"
)
_NAMES_OPERATION = re.compile(r"torch/distributed/(distributed_c10d|_functional_collectives|nn/functional)\.py")
_TRANSPARENT = re.compile(
    r"torch/distributed/c10d_logger|torch/(_ops|_compile)\.py|torch/_library/|torch/futures/|torch/utils/_contextlib|torch/autograd/function\.py"
)
_AUTOGRAD = re.compile(r"torch/autograd/graph\.py")
_STARTING = re.compile(r"^(init_process_group|new_group|new_subgroups\w*|split_group|init_device_mesh)$")
_LEAVING = re.compile(r"^(destroy|abort)_process_group$")
_STORE = re.compile(r"store|rendezvous")
_NO_OPERATION = re.compile(r"^(wait_tensor|wait|_wait\w*|wrapper|__\w+__)$")
_P2P = re.compile(r"^(send|recv|isend|irecv|batch_isend_irecv|send_object_list|recv_object_list)$")
_FOREIGN = re.compile(
    r"(^|/)(deep_ep|nvshmem|tensorpipe|torch/distributed/rpc|torch/cuda/nccl)[/.]"
    r"|-packages/(mpi4py|ucp|ucxx|horovod|byteps|bagua|mscclpp|nixl|pplx_kernels|cupyx/distributed|cupy/cuda/nccl)[/.]"
    r"|-packages/(flashinfer/comm|vllm/distributed/device_communicators|sglang/srt/distributed/device_communicators)/"
    r"|-packages/ray/(?!data/|train/|tune/)"  # these wait for data, or until a report is taken
)
_DEVICE_SYNC = re.compile(r"torch/cuda/(__init__|streams)|torch/accelerator/")
_WAIT_CALL = re.compile(r"\.(wait|wait_tensor|result)$")
_FOREIGN_NATIVE = re.compile(r"^(nvshmem\w*_|ucp_|uct_|P?MPI_[A-Z])|\bdeep_ep::")
_NATIVE = re.compile(r"\b(gloo::|c10d::(?!\w*Store\b)|nccl[A-Z]\w+)")
UNNAMED = frozenset({"", "undefined"})


def read_communication(frames: Sequence[StackFrame], process: ProcessSample | None) -> Position | None:
    """The operation a stack waits in; None if it is elsewhere, or nothing proves that it waits.

    Args:
        frames: a main thread, innermost first.
        process: the process at the same moment, where it was seen.
    """
    if (foreign := _foreign_frame(frames)) is not None:
        return Position(place=Place.FOREIGN, frame=foreign)
    for frame in frames:
        if _DEVICE_SYNC.search(frame.filename) and "synchronize" in frame.name:
            return Position(place=Place.DEVICE, frame=frame)
        if _TRANSPARENT.search(frame.filename) or not frame.line:
            continue
        if _C10D.search(frame.filename):
            if any(_LEAVING.match(outer.bare_name) for outer in frames if _C10D.search(outer.filename)):
                return None  # it will issue nothing more, whatever it waits for
            return _read_start(frame, frames) or (None if _STORE.search(frame.name) else _read_operation(frame, frames))
        return _read_line(frame, frames, process)
    return None


def _foreign_frame(frames: Sequence[StackFrame]) -> StackFrame | None:
    """The frame of another communication library that a stack waits in, be it by a lock or a socket of Python's."""
    for frame in frames:
        if _FOREIGN.search(plain_name(frame.filename)):
            return frame
        if frame.line and not is_standard(frame.filename) and not _TRANSPARENT.search(frame.filename):
            return None
    return None


def _read_line(frame: StackFrame, frames: Sequence[StackFrame], process: ProcessSample | None) -> Position | None:
    """A frame that is not of torch.distributed lies on top: it may wait in native code all the same."""
    if frame.is_own and frame.source is not None and frame.source.is_polling:
        return Position(place=Place.COLLECTIVE, frame=frame, is_polling=True)
    if _is_blocked(process) and (_AUTOGRAD.search(frame.filename) or _waits_natively(frame)):
        return Position(place=Place.COLLECTIVE, frame=frame, sign=_read_sign(frame, frames))
    return None


def waits_in_native(frames: Sequence[StackFrame]) -> bool:
    """Whether native frames, down to the first of Python, are of a communication library."""
    for frame in frames:
        if frame.filename.endswith(".py"):
            return False
        if _NATIVE.search(frame.name):
            return True
    return False


def waits_in_foreign(frames: Sequence[StackFrame]) -> bool:
    """The same of another communication library."""
    native = (frame for frame in takewhile(lambda frame: not frame.filename.endswith(".py"), frames))
    return any(_FOREIGN_NATIVE.search(frame.name) for frame in native)


def _is_blocked(process: ProcessSample | None) -> bool:
    return process is not None and process.system_call == "futex"


def _waits_natively(frame: StackFrame) -> bool:
    """Whether the source line waits for work; that no Python frame lies above it shows that the wait is native."""
    return frame.is_own and frame.source is not None and any(_WAIT_CALL.search(call) for call in frame.source.calls)


def _read_start(frame: StackFrame, frames: Sequence[StackFrame]) -> Position | None:
    """Creating a group is a collective too, of all ranks: they meet in the store."""
    names = (outer.bare_name for outer in frames if _C10D.search(outer.filename))
    name = next((name for name in names if _STARTING.match(name)), None)
    if name is None:
        return None
    return Position(place=Place.COLLECTIVE, frame=frame, op=name, sign=GroupSign(is_default=True, is_described=True))


def _read_operation(frame: StackFrame, frames: Sequence[StackFrame]) -> Position:
    name = frame.bare_name
    known = _locals(frames)
    sign = _read_sign(frame, frames)
    if not _P2P.match(name):
        is_named = _NAMES_OPERATION.search(frame.filename) and not _NO_OPERATION.match(name)
        peer = _as_rank(known.get("src", ""))
        return Position(place=Place.COLLECTIVE, frame=frame, op=name if is_named else "", sign=sign, peer=peer)
    is_sender = "send" in name and "irecv" not in name
    peer = _as_rank(known.get("dst" if is_sender else "src", ""))
    return Position(place=Place.P2P, frame=frame, op=name, sign=sign, peer=peer, is_sender=is_sender)


def _read_sign(frame: StackFrame, frames: Sequence[StackFrame]) -> GroupSign:
    known = _locals(frames)
    own = next((outer for outer in frames if outer.is_own), None)
    text = own.source.group if own is not None and own.source is not None else ""
    desc = known.get("group_desc", "")
    is_default = known.get("is_default_group") == "True" or desc == "default_pg" or frame.locals.get("group") == "None"
    return GroupSign(
        is_default=is_default,
        size=_as_rank(known.get("group_size", "")),
        group_rank=_as_rank(known.get("group_rank", "")),
        label="" if is_default else text if desc in UNNAMED else desc,
        is_described=is_default or desc not in UNNAMED,
    )


def _locals(frames: Sequence[StackFrame]) -> dict[str, str]:
    """The kept locals of the innermost frames of torch.distributed, the inner ones' winning."""
    found: dict[str, str] = {}
    for frame in frames:
        if not _C10D.search(frame.filename) and not _TRANSPARENT.search(frame.filename):
            break
        found = {**frame.locals, **{name: value for name, value in found.items() if value != "None"}}
    return found


def _as_rank(digits: str) -> int | None:
    return int(digits) if digits.isdigit() else None
