"""The interpreter's lock (C49, C50), and watchdogs that watch themselves (C52, C53)."""

from pardbg.watchdog.model.names import Cause, CollectorName, Kind, Status
from pardbg.watchdog.sim.casebook.case import Case, Family, less_seen, near_miss, reported
from pardbg.watchdog.sim.casebook.draw import Draw
from pardbg.watchdog.sim.casebook.job import Job
from pardbg.watchdog.sim.casebook.lines import glog, heartbeat
from pardbg.watchdog.sim.casebook.places import DESTROY, LAUNCH_TOP, LOADER, library, native
from pardbg.watchdog.sim.faults.absent import missing
from pardbg.watchdog.sim.instruction import Op
from pardbg.watchdog.sim.truth import NOT_SURE, Answer, Truth, unknown_because

_LOG = CollectorName.RANK_LOG
_AUTOGRAD = (library("_engine_run_backward", "torch/autograd/graph.py", 841), library("backward", "torch/_tensor.py", 648))


def _broken_communicator(draw: Draw, *, is_logged: bool) -> tuple[Job, str]:
    job = Job(draw, draw.world(4, 16))
    job.step(3)
    job.issue(Op.ALL_REDUCE, 4_194_304, is_done=False)
    victim = draw.rank(job.ranks)
    job.stand(victim, *_AUTOGRAD, *job.base)
    job.stand(victim, *LAUNCH_TOP, library("run", "triton/runtime/jit.py", 700), *job.base, is_native=True, owns_gil=True)
    if is_logged:
        text = (
            "NET/IB : Got completion from peer 10.0.0.3<4000> with status=12 opcode=129 len=0 vendor err 129 (Recv) hca mlx5_1"
        )
        job.nccl(victim, text, level="WARN")
        lock = f"[PG ID 0 PG GUID 0 Rank {victim}] Could not acquire GIL within 300 ms on exit, possible GIL induced hang"
        job.log(victim, glog(victim, 700, lock))
    return job, job.host(victim)


def _error_then_lock(draw: Draw) -> Case:
    job, host = _broken_communicator(draw, is_logged=True)
    return Case(
        scenario=(
            "Every rank waits in the same all_reduce. One rank logged an InfiniBand completion error first, and later that it "
            "could not acquire the interpreter's lock; natively a kernel launch on it does not return while it holds that lock."
        ),
        files=job.files,
        truth=Truth(
            kind=Kind.COMM_STUCK, cause=Cause.NETWORK, hosts=(host, "10.0.0.3"), acceptable=(Answer(kind=Kind.COMM_STUCK),)
        ),
    )


def _lock_only(draw: Draw) -> Case:
    job, _ = _broken_communicator(draw, is_logged=False)
    return Case(
        scenario="Every rank waits in the same all_reduce. On one rank a kernel launch does not return. Nothing was logged.",
        files=job.files,
        truth=Truth(kind=Kind.COMM_STUCK, acceptable=(NOT_SURE,)),
    )


def _held(draw: Draw, *, is_held: bool) -> tuple[Job, int]:
    job = Job(draw, draw.world(4, 16))
    culprit = draw.rank(job.ranks)
    job.step(3)
    job.issue(Op.ALL_REDUCE, 1024, ranks=job.others(culprit), is_done=False)
    job.stand(culprit, draw.own("snapshot", "memory_profile.py"), *job.base, owns_gil=is_held)
    allocator = native("c10::cuda::CUDACachingAllocator::recordAnnotation", "libc10_cuda.so")
    job.stand(culprit, native("__lll_lock_wait", "libc.so.6"), allocator, *job.base, is_native=True, owns_gil=is_held)
    job.thread(culprit, "pt_autograd_0", native("take_gil", "python3.11"))
    return job, culprit


def _allocator_lock(draw: Draw) -> Case:
    job, culprit = _held(draw, is_held=True)
    return Case(
        scenario=(
            f"Memory profiling is on. On rank {culprit} the main thread holds the interpreter's lock and waits for the "
            "allocator's; another thread holds that one and waits for the interpreter's. The others wait in an all_reduce."
        ),
        files=job.files,
        truth=missing(culprit, cause=Cause.GIL_HELD),
    )


def _plain_lock(draw: Draw) -> Case:
    job = Job(draw, draw.world(4, 16))
    culprit = draw.rank(job.ranks)
    job.step(3)
    job.issue(Op.ALL_REDUCE, 1024, ranks=job.others(culprit), is_done=False)
    job.stand(culprit, library("acquire", "filelock/_api.py", 330), draw.own("load_cached", "cache.py"), *job.base)
    return Case(
        scenario=(
            f"Rank {culprit} waits for a file lock; no thread of it holds the interpreter's lock. The others wait in an "
            "all_reduce."
        ),
        files=job.files,
        truth=missing(culprit, cause=Cause.LOCK),
    )


def _beating(draw: Draw, *, has_missing: bool) -> tuple[Job, int]:
    job = Job(draw, draw.world(4, 16))
    culprit = draw.rank(job.ranks)
    job.step(4)
    if has_missing:
        job.issue(Op.ALL_REDUCE, 1024, ranks=job.others(culprit), is_done=False)
        job.stand(culprit, *LOADER, *job.base)
    victim = draw.rank(job.others(culprit))
    job.log(victim, heartbeat(victim, 900, 103))
    if not has_missing:
        job.unseen(*job.ranks, dumps=False)
    return job, culprit


def _heartbeat_and_missing(draw: Draw) -> Case:
    job, culprit = _beating(draw, has_missing=True)
    return Case(
        scenario=(
            f"A heartbeat monitor logged that the watchdog got stuck. By the flight recorders all ranks but {culprit} wait in "
            f"an all_reduce; rank {culprit} has not entered it and waits for its data loader."
        ),
        files=job.files,
        truth=missing(culprit, cause=Cause.DATA_LOADING),
    )


def _heartbeat_and_nothing(draw: Draw) -> Case:
    job, _ = _beating(draw, has_missing=False)
    return Case(
        scenario=(
            "A heartbeat monitor logged that the watchdog got stuck. By the flight recorders every operation is done on every "
            "rank."
        ),
        files=job.files,
        truth=Truth(kind=None, status=Status.UNDETERMINED, exit_code=4, acceptable=(NOT_SURE, Answer(kind=None))),
        is_ended_unsaid=True,
    )


def _heartbeats_only(draw: Draw) -> Case:
    job = Job(draw, 3)
    for rank, pending in enumerate((84, 103, 103)):
        job.log(rank, heartbeat(rank, 900 + rank, pending))
    return Case(
        scenario=(
            "Three ranks log that their watchdog got stuck; 84 operations are pending on rank 0, 103 on each of the others."
        ),
        files=job.files,
        truth=unknown_because("no operation is known"),
        is_ended_unsaid=True,
    )


_SAVED = "2026-11-29 14:00:01,120 | INFO | trainer | step 5000/5000 done, final checkpoint saved to /ckpt/final\n"


def _finished(draw: Draw) -> Case:
    job = Job(draw, draw.world(4, 16))
    for rank in job.ranks:
        job.log(rank, _SAVED + heartbeat(rank, 900 + rank / 10, 0))
        job.stand(rank, *DESTROY, draw.own("cleanup"), *job.base[2:])
    return Case(
        scenario=(
            "Every rank logged that the last step is done and the final checkpoint saved. Then the heartbeat monitors say "
            "that the watchdogs got stuck. All stand in `destroy_process_group`."
        ),
        files=job.files,
        truth=Truth(
            kind=Kind.TEARDOWN_STUCK,
            culprits=tuple(job.ranks),
            acceptable=(Answer(kind=Kind.TEARDOWN_STUCK),),
        ),
    )


def _one_tears_down(draw: Draw) -> Case:
    job = Job(draw, draw.world(4, 16))
    culprit = draw.rank(job.ranks)
    job.step(4)
    job.issue(Op.ALL_REDUCE, 1024, ranks=job.others(culprit), is_done=False)
    job.stand(culprit, *DESTROY, draw.own("cleanup"), *job.base[2:])
    causes = (Answer(kind=Kind.MISSING_PARTICIPANT, culprits=(culprit,)), Answer(kind=Kind.DEAD_RANK, culprits=(culprit,)))
    return Case(
        scenario=(
            f"Rank {culprit} stands in `destroy_process_group`, called from `cleanup`; it logged no exception. The others wait "
            "in the step's all_reduce."
        ),
        files=job.files,
        truth=Truth(kind=Kind.MISSING_PARTICIPANT, cause=Cause.LEFT_LOOP, culprits=(culprit,), acceptable=causes),
    )


def _finished_by_log(draw: Draw) -> Case:
    job = Job(draw, draw.world(4, 16))
    for rank in job.ranks:
        job.log(rank, _SAVED + heartbeat(rank, 900 + rank / 10, 0))
    return Case(
        scenario="Every rank logged that the last step is done; then the heartbeat monitors say that the watchdogs got stuck.",
        files=job.files,
        truth=unknown_because(
            "no stack shows where they are", acceptable=(Answer(kind=Kind.TEARDOWN_STUCK, culprits=tuple(job.ranks)),)
        ),
        is_ended_unsaid=True,
    )


FAMILIES = (
    Family(
        number="C49",
        title="a broken communicator behind the interpreter's lock",
        variants=(reported(_error_then_lock, _LOG), near_miss(_lock_only)),
    ),
    Family(
        number="C50",
        title="the allocator's lock against the interpreter's",
        variants=(reported(_allocator_lock), near_miss(_plain_lock)),
    ),
    Family(
        number="C52",
        title="a heartbeat is no cause",
        variants=(reported(_heartbeat_and_missing), near_miss(_heartbeat_and_nothing), less_seen(_heartbeats_only, _LOG)),
    ),
    Family(
        number="C53",
        title="a heartbeat after the end",
        variants=(reported(_finished), near_miss(_one_tears_down), less_seen(_finished_by_log, _LOG)),
    ),
)
