"""Links, NICs and the driver, as logs tell of them (C64, C65, C68, C70, C71, C74)."""

from pardbg.watchdog.model.names import Cause, CollectorName, Kind
from pardbg.watchdog.sim.casebook.case import Case, Family, less_seen, near_miss, reported
from pardbg.watchdog.sim.casebook.draw import Draw
from pardbg.watchdog.sim.casebook.job import Job
from pardbg.watchdog.sim.casebook.lines import timeout, xid
from pardbg.watchdog.sim.faults.absent import missing
from pardbg.watchdog.sim.instruction import Op
from pardbg.watchdog.sim.truth import Answer, Truth, unknown_because

_LOG, _KERNEL = CollectorName.RANK_LOG, CollectorName.KERNEL_LOG


def _stuck_everywhere(draw: Draw, world: int, *, first: bool = False) -> Job:
    job = Job(draw, world)
    if not first:
        job.step(draw.number(2, 9))
    job.issue(Op.ALL_REDUCE, 4_194_304, is_done=False)
    return job


_COMPLETION = "NET/IB : Got completion from peer 10.0.0.3<4000> with error 12, opcode 1, len 0, vendor err 129"
_PORT = "NET/IB : Got async event : port error"


def _port_flaps(draw: Draw) -> Case:
    job = _stuck_everywhere(draw, 32)
    bad = draw.number(0, 3)
    for rank in range(8 * bad, 8 * bad + 8):
        for _ in range(draw.number(2, 5)):
            job.nccl(rank, _PORT, level="WARN")
    other = (bad + 1) % 4
    job.nccl(8 * other, _COMPLETION, level="WARN")
    host = job.host(8 * bad)
    return Case(
        scenario=(
            f"Every rank waits in the same all_reduce. The ranks on {host} logged port errors of their InfiniBand card, "
            "several times. A rank of another node logged a completion error."
        ),
        files=job.files,
        truth=Truth(kind=Kind.COMM_STUCK, cause=Cause.NETWORK, hosts=(host,), acceptable=(Answer(kind=Kind.COMM_STUCK),)),
    )


def _no_port_errors(draw: Draw) -> Case:
    job = _stuck_everywhere(draw, 32)
    return Case(
        scenario="Every rank waits in the same all_reduce. Nothing was logged.",
        files=job.files,
        truth=Truth(kind=Kind.COMM_STUCK),
    )


def _no_route(draw: Draw) -> Case:
    job = _stuck_everywhere(draw, 16, first=True)
    job.nccl(3, _COMPLETION, level="WARN")
    return Case(
        scenario=(
            "Every rank waits in its first operation. Each attempt, one rank of the first node logs a completion error 12 to "
            "the same peer; no port errors."
        ),
        files=job.files,
        truth=Truth(
            kind=Kind.COMM_STUCK,
            cause=Cause.NETWORK,
            hosts=(job.host(3), "10.0.0.3"),
            acceptable=(Answer(kind=Kind.INIT_STUCK), Answer(kind=Kind.COMM_STUCK)),
        ),
    )


def _first_over_p2p(draw: Draw) -> Case:
    job = _stuck_everywhere(draw, 2, first=True)
    for rank in job.ranks:
        job.nccl_comm(rank, "Init COMPLETE")
        job.nccl(rank, f"Channel 00/0 : {rank}[{rank}] -> {1 - rank}[{1 - rank}] via P2P/direct pointer")
        job.gpu(rank, util=100, power_w=160)
    return Case(
        scenario=(
            "Two GPUs of one machine. NCCL's set-up is complete, over direct access between the GPUs. The first operation of "
            "all never ends; both GPUs are at 100 % without memory traffic. With NCCL_P2P_DISABLE=1 it works."
        ),
        files=job.files,
        truth=Truth(
            kind=Kind.COMM_STUCK,
            cause=Cause.P2P_ACCESS,
            acceptable=(Answer(kind=Kind.COMM_STUCK), Answer(kind=Kind.INIT_STUCK)),
        ),
    )


def _first_unexplained(draw: Draw) -> Case:
    return Case(
        scenario="Every rank waits in the first operation of all. Nothing was logged.",
        files=_stuck_everywhere(draw, draw.world(4, 16), first=True).files,
        truth=Truth(kind=Kind.INIT_STUCK, acceptable=(Answer(kind=Kind.COMM_STUCK),)),
    )


def _one_node(draw: Draw) -> tuple[Job, int]:
    job = _stuck_everywhere(draw, 8)
    return job, draw.rank(job.ranks)


def _consequence_of(draw: Draw) -> Case:
    job, bad = _one_node(draw)
    peers = draw.ranks(3, job.others(bad))
    for rank in (bad, *peers):
        cause = 149 if rank == bad else 145
        job.kernel(
            job.host(0), xid(job.pci(rank), 45, f"Ch 00000001 caused by previous Xid {cause}", 5.0 + rank, pid=job.pid(rank))
        )
    return Case(
        scenario=(
            f"Every rank waits in the same all_reduce. The kernel log has Xid 45 lines only: on the GPU of rank {bad} `caused "
            f"by previous Xid 149`, on those of ranks {list(peers)} `caused by previous Xid 145`. The lines of 149 and 145 "
            "themselves are lost."
        ),
        files=job.files,
        truth=Truth(
            kind=Kind.DEVICE_STUCK,
            cause=Cause.NVLINK,
            culprits=(bad,),
            acceptable=(Answer(kind=Kind.COMM_STUCK, cause=Cause.NVLINK), Answer(kind=Kind.COMM_STUCK)),
        ),
    )


def _clean_up_only(draw: Draw) -> Case:
    job, bad = _one_node(draw)
    job.kernel(job.host(0), xid(job.pci(bad), 45, "Ch 00000001", 5.0, pid=job.pid(bad)))
    return Case(
        scenario=(
            f"Every rank waits in the same all_reduce. The kernel log has one Xid 45 on the GPU of rank {bad}, without a cause."
        ),
        files=job.files,
        truth=Truth(kind=Kind.COMM_STUCK),
    )


def _fell_off(draw: Draw) -> Case:
    job, bad = _one_node(draw)
    job.kernel(job.host(0), xid(job.pci(bad), 79, "GPU has fallen off the bus.", 5.0))
    return Case(
        scenario=f"Every rank waits in the same all_reduce. By the kernel log the GPU of rank {bad} has fallen off the bus.",
        files=job.files,
        truth=Truth(kind=Kind.DEVICE_STUCK, cause=Cause.GPU_LOST, culprits=(bad,)),
    )


_LINK = "NETIR_LINK_EVT {level} XC0 i0 Link {link:02d} (0x00000004 0x0000000a 0x00000000 0x00000000 0x00000000 0x00000000)"


def _fatal_links(draw: Draw) -> Case:
    job, first = _one_node(draw)
    pair = tuple(sorted((first, (first + 1) % 8)))
    for rank in pair:
        job.kernel(job.host(0), xid(job.pci(rank), 145, _LINK.format(level="Fatal", link=3), 5.0 + rank))
        job.end(rank, -6)
    return Case(
        scenario=(
            f"The processes of ranks {list(pair)} were aborted (-6). The kernel log has fatal NVLink errors (Xid 145) on both "
            "their GPUs. The others wait in an all_reduce."
        ),
        files=job.files,
        truth=Truth(
            kind=Kind.DEAD_RANK,
            culprits=pair,
            victims_exclude=pair,
            acceptable=(
                Answer(kind=Kind.DEVICE_STUCK, cause=Cause.NVLINK, culprits=pair),
                Answer(kind=Kind.DEAD_RANK, culprits=pair),
            ),
            also=(pair,),
        ),
    )


def _harmless_links(draw: Draw) -> Case:
    job, first = _one_node(draw)
    job.kernel(job.host(0), xid(job.pci(first), 144, _LINK.format(level="Nonfatal", link=-1), 5.0))
    return Case(
        scenario=(
            "Every rank waits in the same all_reduce. The kernel log has one non-fatal link event (144) on the GPU of rank "
            f"{first}."
        ),
        files=job.files,
        truth=Truth(kind=Kind.COMM_STUCK),
    )


def _kernel_log_denied(draw: Draw) -> Case:
    job, _ = _one_node(draw)
    job.kernel(job.host(0), "dmesg: read kernel buffer failed: Operation not permitted\n")
    return Case(
        scenario=(
            "Every rank waits in the same all_reduce. In the container the kernel log may not be read. Nothing else was logged."
        ),
        files=job.files,
        truth=Truth(kind=Kind.COMM_STUCK),
    )


def _kernel_log_denied_and_missing(draw: Draw) -> Case:
    job = Job(draw, 8)
    late = draw.rank(job.ranks)
    job.step(2)
    job.issue(Op.ALL_REDUCE, 1024, ranks=job.others(late), is_done=False)
    job.kernel(job.host(0), "dmesg: read kernel buffer failed: Operation not permitted\n")
    return Case(
        scenario=f"All ranks but {late} wait in an all_reduce. In the container the kernel log may not be read.",
        files=job.files,
        truth=missing(late),
    )


def _timeouts_everywhere(draw: Draw) -> Case:
    job = Job(draw, 8)
    for rank in job.ranks:
        job.log(rank, timeout(rank, 600 + rank / 50, 41, "ALLREDUCE", numel=4096))
    return Case(
        scenario="All eight ranks log the time-out of the same all_reduce. Nothing else is left.",
        files=job.files,
        truth=unknown_because("all look alike", acceptable=(Answer(kind=Kind.COMM_STUCK),)),
        is_ended_unsaid=True,
    )


FAMILIES = (
    Family(
        number="C64",
        title="an InfiniBand port flaps",
        variants=(reported(_port_flaps, _LOG), less_seen(_no_port_errors)),
    ),
    Family(
        number="C65",
        title="NICs that cannot reach each other",
        variants=(reported(_no_route, _LOG), near_miss(_port_flaps, _LOG), less_seen(_first_unexplained)),
    ),
    Family(
        number="C68",
        title="direct access between GPUs is broken",
        variants=(reported(_first_over_p2p, _LOG), less_seen(_first_unexplained)),
    ),
    Family(
        number="C70",
        title="Xid 45 is a consequence",
        variants=(reported(_consequence_of, _KERNEL), near_miss(_clean_up_only, _KERNEL), near_miss(_fell_off, _KERNEL)),
    ),
    Family(
        number="C71",
        title="NVLink errors across the node",
        variants=(reported(_fatal_links, _KERNEL), near_miss(_harmless_links, _KERNEL)),
    ),
    Family(
        number="C74",
        title="no kernel log is no health",
        variants=(
            reported(_kernel_log_denied),
            near_miss(_kernel_log_denied_and_missing),
            less_seen(_timeouts_everywhere, _LOG),
        ),
    ),
)
