"""Communicators that are never set up, as NCCL tells of them (C61, C62, C67, C73)."""

from pardbg.watchdog.model.names import Cause, CollectorName, Kind
from pardbg.watchdog.sim.casebook.case import Case, Family, less_seen, near_miss, reported
from pardbg.watchdog.sim.casebook.draw import Draw
from pardbg.watchdog.sim.casebook.job import Job
from pardbg.watchdog.sim.casebook.lines import store_wait
from pardbg.watchdog.sim.faults.absent import missing
from pardbg.watchdog.sim.instruction import Op
from pardbg.watchdog.sim.truth import NOT_SURE, Answer, Truth, unknown_because

_LOG, _KERNEL = CollectorName.RANK_LOG, CollectorName.KERNEL_LOG


_STAGES = ("Bootstrap : Using eth0:10.0.0.2<0>", "Channel 00/08 : 0 1 2 3", "Connected all rings")


def _seven_and_eight(draw: Draw) -> Case:
    job = Job(draw, 15, per_host=8)
    for rank in job.ranks:
        job.nccl_comm(rank, "Init START")
        for stage in _STAGES[: 1 + draw.number(0, 2)]:
            job.nccl(rank, stage)
    return Case(
        scenario=(
            "Fifteen ranks on two nodes, eight and seven. All log that NCCL's set-up starts; they stand at three different "
            "stages of it, and none logs that it is complete."
        ),
        files=job.files,
        truth=Truth(kind=Kind.INIT_STUCK, cause=Cause.BOOTSTRAP, acceptable=(Answer(kind=Kind.INIT_STUCK), NOT_SURE)),
        is_ended_unsaid=True,
    )


def _one_missing_at_the_store(draw: Draw) -> Case:
    job = Job(draw, draw.world(4, 16))
    absent = draw.rank(job.ranks)
    job.has_job_file = False
    size = len(job.ranks)
    job.file("train.log", "".join(store_wait(rank, size, size - 1) for rank in job.others(absent)))
    return Case(
        scenario=(
            f"Of {size} ranks all but {absent} log that they wait in the store's barrier, under one key, which {size - 1} have "
            "joined. Nothing else is left."
        ),
        files=job.files,
        truth=Truth(kind=Kind.INIT_STUCK, cause=Cause.STORE_WAIT, culprits=(absent,), acceptable=(NOT_SURE,)),
        is_ended_unsaid=True,
    )


def _half_complete(draw: Draw) -> Case:
    job = Job(draw, 8, per_host=4)
    for rank in job.ranks:
        job.nccl_comm(rank, "Init START")
        if rank % 2 == 0:
            job.nccl_comm(rank, "Init COMPLETE")
    odd = tuple(rank for rank in job.ranks if rank % 2)
    return Case(
        scenario=(
            "Eight ranks on two nodes start NCCL's set-up. Those with even numbers log that it is complete, the others do not."
        ),
        files=job.files,
        truth=Truth(kind=Kind.INIT_STUCK, candidates=odd, acceptable=(Answer(kind=Kind.INIT_STUCK), NOT_SURE)),
        is_ended_unsaid=True,
    )


def _all_complete(draw: Draw) -> Case:
    job = Job(draw, 8, per_host=4)
    late = draw.rank(job.ranks)
    for rank in job.ranks:
        job.nccl_comm(rank, "Init START")
        job.nccl_comm(rank, "Init COMPLETE")
    job.step(2)
    job.issue(Op.ALL_REDUCE, 1024, ranks=job.others(late), is_done=False)
    return Case(
        scenario=(
            f"NCCL's set-up is complete on all ranks. All ranks but {late} wait in a later all_reduce; rank {late} has not "
            "entered it."
        ),
        files=job.files,
        truth=missing(late),
    )


_SHM = "Error: failed to extend /dev/shm/nccl-AbCdEf to 9637892 bytes, error: No space left on device (28)"


def _shared_memory_full(draw: Draw) -> Case:
    job = Job(draw, 8)
    full = (0, 1)
    for rank in job.ranks:
        job.nccl_comm(rank, "Init START")
    for rank in full:
        job.nccl(rank, _SHM, level="WARN")
    job.nccl(2, "socketProgress: Connection closed by remote peer node00<41234>", level="WARN")
    return Case(
        scenario=(
            "Ranks 0 and 1 logged that a file in /dev/shm could not grow: no space left. Later rank 2 logged that a peer "
            "closed a connection. NCCL's set-up is complete nowhere."
        ),
        files=job.files,
        truth=Truth(
            kind=Kind.INIT_STUCK,
            cause=Cause.SHM,
            culprits=full,
            acceptable=(Answer(kind=Kind.INIT_STUCK, cause=Cause.SHM), Answer(kind=Kind.INIT_STUCK, culprits=full)),
        ),
        is_ended_unsaid=True,
    )


def _connection_closed_only(draw: Draw) -> Case:
    job = Job(draw, 8)
    victim = draw.rank(job.ranks)
    job.nccl_comm(victim, "Init START")
    job.nccl(victim, "socketProgress: Connection closed by remote peer node00<41234>", level="WARN")
    return Case(
        scenario=(
            f"Rank {victim} logged that NCCL's set-up starts and then that a peer closed a connection. Nothing else is left."
        ),
        files=job.files,
        truth=unknown_because("a victim's words only", acceptable=(Answer(kind=Kind.INIT_STUCK),)),
        is_ended_unsaid=True,
    )


def _multicast_fails(draw: Draw) -> Case:
    job = Job(draw, 16)
    for rank in job.ranks:
        job.nccl_comm(rank, "Init START")
        if rank >= 8:
            job.nccl(rank, "Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152 : CUDA error 401", level="WARN")
    host = job.host(8)
    return Case(
        scenario=(
            f"Sixteen ranks on two nodes start NCCL's set-up; none completes it. All eight ranks on {host} warn that multicast "
            "memory could not be bound, with CUDA error 401. The first node logs no warning."
        ),
        files=job.files,
        truth=Truth(
            kind=Kind.INIT_STUCK,
            hosts=(host,),
            acceptable=(Answer(kind=Kind.INIT_STUCK), Answer(kind=Kind.INIT_STUCK, culprits=())),
        ),
        is_ended_unsaid=True,
    )


def _no_warning(draw: Draw) -> Case:
    job = Job(draw, 16)
    for rank in job.ranks:
        job.nccl_comm(rank, "Init START")
    return Case(
        scenario="Sixteen ranks on two nodes start NCCL's set-up; none completes it, and nothing warns.",
        files=job.files,
        truth=Truth(kind=Kind.INIT_STUCK, acceptable=(Answer(kind=Kind.INIT_STUCK), NOT_SURE)),
        is_ended_unsaid=True,
    )


FAMILIES = (
    Family(
        number="C61",
        title="bootstrap with seven and eight ranks",
        variants=(reported(_seven_and_eight, _LOG), near_miss(_all_complete), near_miss(_one_missing_at_the_store, _LOG)),
    ),
    Family(
        number="C62",
        title="half of the ranks complete the set-up",
        variants=(reported(_half_complete, _LOG), near_miss(_all_complete)),
    ),
    Family(
        number="C67",
        title="no room for shared memory",
        variants=(reported(_shared_memory_full, _LOG), less_seen(_connection_closed_only, _LOG)),
    ),
    Family(
        number="C73",
        title="the fabric manager was restarted",
        variants=(reported(_multicast_fails, _LOG), near_miss(_no_warning, _LOG)),
    ),
)
