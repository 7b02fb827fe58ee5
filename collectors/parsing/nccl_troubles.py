"""What NCCL warns of, by its words (nccl/src: transport/net_ib*, misc/{socket,shmutils,ibvwrap}.cc, init.cc). Pure.

Errors of an adapter are its host's; those of one queue may come of either end, as a completion's status may (`log_network`).
"""

import re

from pardbg.watchdog.model.log_event import NcclProcess, NcclWarning, Trouble

_NO_WAY = (
    r"(?:No route to host|(?:Connection|[Oo]peration) timed out|(?:Network|Host) is (?:unreachable|down)|connection abort)"
)
_TROUBLES = (
    (Trouble.PORT_ERROR, re.compile(r"Got async event ?: .{0,100}?port error")),
    (Trouble.ADAPTER_FAILED, re.compile(r"async (?:fatal )?event\b.{0,100}?: local catastrophic error")),
    (Trouble.QUEUE_FAILED, re.compile(r"async fatal event on QP|async event\b.{0,100}?work queue (?:catastrophic )?error")),
    (Trouble.COMPLETION_ERROR, re.compile(r"Got completion from peer .{0,200}?(?:with error|status=) ?\d")),
    (Trouble.SHM_FULL, re.compile(r"(?:dev/shm/|shared memory|posix_fallocate).{0,300}?No space left")),
    (Trouble.SHM_FULL, re.compile(r"failed to extend /dev/shm/\S{1,200} to \d{1,18} bytes\s*$")),
    (Trouble.SHARED_DEVICE, re.compile(r"Duplicate GPU detected ?: rank \d")),
    (Trouble.MISMATCH, re.compile(r"Mismatched collective detected|collective mismatch error")),
    (Trouble.UNREACHABLE, re.compile(rf"\b[Cc]onnect to \S{{1,100}} (?:failed|returned) .{{0,60}}?{_NO_WAY}")),
    (Trouble.UNREACHABLE, re.compile(rf"ibv_modify_qp failed with .{{0,60}}?{_NO_WAY}")),
    (Trouble.NVLS, re.compile(r"NVLS|multicast|Cuda failure 401\b|error 401\b")),
    (Trouble.OUT_OF_MEMORY, re.compile(r"out of memory", re.IGNORECASE)),
    (Trouble.NO_INTERFACE, re.compile(r"[Nn]o (?:socket )?interface found")),
    (Trouble.CUDA_FAILURE, re.compile(r"Cuda failure")),
)
_OF_ANY_LINE = frozenset({Trouble.COMPLETION_ERROR, Trouble.SHARED_DEVICE, Trouble.MISMATCH, Trouble.SHM_FULL})
"""What is NCCL's for sure, and of which torch quotes the last one behind ``Last error:``."""

_PEER = re.compile(r"(?:from peer|[Cc]onnect to) ([\w.:%-]{1,100}?)(?:<\d{1,6}>)? ")
_STATUS = re.compile(r"(?:with error |status=)(\d{1,4})")
_PAIR = re.compile(r"Duplicate GPU detected ?: rank (\d{1,7}) and rank (\d{1,7}) both")
_TELLS_PEER = frozenset({Trouble.COMPLETION_ERROR, Trouble.UNREACHABLE})
_NOBODY = NcclProcess(host="", pid=0)


def find_trouble(text: str) -> Trouble | None:
    """What a warning is about; None for those that say nothing of use."""
    return next((trouble for trouble, pattern in _TROUBLES if pattern.search(text)), None)


def read_unnamed(line: str, rank: int | None) -> NcclWarning | None:
    """A warning on a line that does not say whose it is, as some writers cut it or torch quotes it."""
    is_quoted = line.lstrip().startswith(("NET/IB", "Duplicate GPU")) or "Last error:" in line or "]: NET/IB" in line
    trouble = find_trouble(line) if is_quoted or "]: Duplicate GPU" in line or "NCCL WARN" in line else None
    return describe(trouble, _NOBODY, line, rank) if trouble in _OF_ANY_LINE else None


def describe(trouble: Trouble, process: NcclProcess, text: str, rank: int | None) -> NcclWarning:
    """The warning with what its text tells beside."""
    peer = _PEER.search(text) if trouble in _TELLS_PEER else None
    status = _STATUS.search(text) if trouble is Trouble.COMPLETION_ERROR else None
    pair = _PAIR.search(text) if trouble is Trouble.SHARED_DEVICE else None
    return NcclWarning(
        rank=rank,
        process=process,
        trouble=trouble,
        peer=peer[1] if peer else "",
        status=int(status[1]) if status else None,
        comm_ranks=(int(pair[1]), int(pair[2])) if pair else (),
    )
