"""Lines of NCCL: ``host:pid:tid [device] NCCL INFO|WARN text``. The bracket is a CUDA device, the pid the container's."""

import re

from pardbg.collectors.parsing.log_lines import LineRead
from pardbg.collectors.parsing.nccl_troubles import describe, find_trouble, read_unnamed
from pardbg.watchdog.model.log_event import CommunicatorStep, LogEvent, NcclProcess, Trouble, Way, WayChosen

WORDS = {
    " NCCL ": (
        "Init START",
        "Init COMPLETE",
        "Abort COMPLETE",
        "Destroy COMPLETE",
        "NCCL WARN",
        "Got async event",
        "Duplicate GPU detected",
        "NET/IB : Got completion from peer",
        "NET/IB: Got completion from peer",
    )
}
SAMPLED_WORDS = {
    " NCCL ": (
        "NET/Socket : Using",
        "NET/IB : Using",
        "NET/IB : No device",
        "NCCL_IB_DISABLE set",
        "NCCL_P2P_DISABLE set",
        "via P2P",
        "via SHM",
        "GPU Direct RDMA Disabled",
    )
}
"""Every channel has such a line: a few of each tell as much."""

_LINE = re.compile(
    r"(?P<host>[\w.-]{1,253}):(?P<pid>\d{1,10}):\d{1,10} \[(?P<device>\d{1,4})\] "
    r"(?:[\w./-]{1,200}:\d{1,6} )?NCCL (?P<level>INFO|WARN) "
)
_COMM = re.compile(r"comm 0x[0-9a-f]{1,16} rank (\d{1,7}) n[rR]anks (\d{1,7})\b(.{0,300}?) - (Init START|\w{1,20} COMPLETE)")
_BUS, _COMM_ID = re.compile(r"busId ([0-9a-f:.]{1,16})"), re.compile(r"commId (0x[0-9a-f]{1,16})")
_WAYS = (
    (Way.SOCKET, re.compile(r"NET/Socket : Using \[")),
    (Way.INFINIBAND, re.compile(r"NET/IB : Using \[")),
    (Way.NO_INFINIBAND, re.compile(r"NET/IB : No device found")),
    (Way.INFINIBAND_OFF, re.compile(r"NCCL_IB_DISABLE set (?:by environment )?to [1-9]")),
    (Way.P2P_OFF, re.compile(r"NCCL_P2P_DISABLE set (?:by environment )?to [1-9]")),
    (Way.P2P, re.compile(r"via P2P\b")),
    (Way.SHM, re.compile(r"via SHM\b")),
    (Way.DIRECT_RDMA_OFF, re.compile(r"GPU Direct RDMA Disabled")),
)


def read_nccl(read: LineRead) -> LogEvent | None:
    """What a line of NCCL tells; None for any other line, and for those that say nothing of use."""
    match = _LINE.search(read.line)
    if match is None:
        return read_unnamed(read.line, read.rank)
    process = NcclProcess(host=match["host"], pid=int(match["pid"]), device=int(match["device"]))
    text = read.line[match.end() :]
    comm = _COMM.search(text)
    if comm is not None:
        return _step(read, process, comm)
    trouble = find_trouble(text)
    if trouble is not None and (match["level"] == "WARN" or trouble is Trouble.PORT_ERROR):
        return describe(trouble, process, text, read.rank)
    way = next((way for way, pattern in _WAYS if pattern.search(text)), None) if match["level"] == "INFO" else None
    return None if way is None else WayChosen(rank=read.rank, process=process, way=way)


def _step(read: LineRead, process: NcclProcess, comm: re.Match[str]) -> CommunicatorStep:
    bus, id_ = _BUS.search(comm[3]), _COMM_ID.search(comm[3])
    return CommunicatorStep(
        rank=read.rank,
        process=process,
        id=id_[1] if id_ else "",
        comm_rank=int(comm[1]),
        size=int(comm[2]),
        bus_id=bus[1] if bus else None,
        step=comm[4],
    )
