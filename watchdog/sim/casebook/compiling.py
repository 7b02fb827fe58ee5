"""Ranks that compile while others train (C17, C92), and collectives out of destructors (C19), and barriers that tell (C20)."""

from msgspec.structs import replace

from pardbg.watchdog.model.names import Cause, CollectorName, Kind, Mismatch, Status
from pardbg.watchdog.model.process import ChildProcess
from pardbg.watchdog.sim.casebook.case import Case, Family, less_seen, near_miss, reported
from pardbg.watchdog.sim.casebook.draw import Draw
from pardbg.watchdog.sim.casebook.job import Job
from pardbg.watchdog.sim.casebook.lines import glog, traceback
from pardbg.watchdog.sim.casebook.places import COMPILE, COMPILER_SYNC, native
from pardbg.watchdog.sim.casebook.rank_zero_only import differing
from pardbg.watchdog.sim.faults.absent import missing
from pardbg.watchdog.sim.instruction import Op
from pardbg.watchdog.sim.truth import NOT_SURE, Answer, Truth, unknown_because

_LOG = CollectorName.RANK_LOG


def slow(*ranks: int, cause: Cause) -> Truth:
    """The others wait for someone who is busy and moves."""
    return Truth(kind=Kind.SLOW_PHASE, cause=cause, waiting_for=ranks, victims_exclude=ranks, status=Status.SLOW, exit_code=0)


def _cache_hit(draw: Draw) -> Case:
    world = draw.world(8, 32)
    hits = draw.minority(world)
    job = Job(draw, world)
    job.step(2)
    job.issue(Op.ALL_GATHER, 64, ranks=job.others(*hits), at=(*COMPILER_SYNC, *COMPILE, *job.base), is_done=False)
    job.issue(Op.ALL_REDUCE, 4_194_304, ranks=hits, is_done=False)
    return Case(
        scenario=(
            f"After a restart with a warm compile cache on some nodes, ranks {list(hits)} wait in the step's all_reduce. The "
            "others wait at the same sequence number in an all_gather that the compiler issues to agree with its peers."
        ),
        files=job.files,
        truth=differing(*hits, by=Mismatch.OP),
    )


def _compiling(draw: Draw) -> tuple[Job, int]:
    job = Job(draw, draw.world(4, 16), backend="gloo")
    culprit = draw.rank(job.ranks)
    job.step(2)
    job.issue(Op.ALL_REDUCE, 4_194_304, ranks=job.others(culprit), is_done=False)
    job.stand(culprit, *COMPILE, *job.base)
    for rank in job.others(culprit):
        job.look(rank)
    return job, culprit


def _compilers_work(draw: Draw) -> Case:
    job, culprit = _compiling(draw)
    job.look(culprit)
    for sample, cpu_s in enumerate((12.0, 21.5)):
        children = (ChildProcess(pid=job.pid(culprit) + 500, name="ptxas", state="R", cpu_s=cpu_s),)
        job.see(culprit, sample, state="S", system_call="wait4", moved_bytes=10**9, cpu_s=900.0, children=children)
    return Case(
        scenario=(
            f"Rank {culprit}'s stack is in Inductor's code generation; a compiler it started used 9.5 s of processor time "
            "between two looks 10 s apart. The others wait in the step's all_reduce."
        ),
        files=job.files,
        truth=slow(culprit, cause=Cause.COMPILE),
    )


def _compilers_stuck(draw: Draw) -> Case:
    job, culprit = _compiling(draw)
    job.look(culprit, cpu_s=0.0)
    return Case(
        scenario=(
            f"Rank {culprit}'s stack is in Inductor's code generation at both looks; it and its children did nothing in "
            "between. The others wait in the step's all_reduce."
        ),
        files=job.files,
        truth=missing(culprit, cause=Cause.COMPILE),
    )


def _one_look(draw: Draw) -> Case:
    job = Job(draw, draw.world(4, 16), backend="gloo")
    culprit = draw.rank(job.ranks)
    job.step(2)
    job.issue(Op.ALL_REDUCE, 4_194_304, ranks=job.others(culprit), is_done=False)
    job.stand(culprit, *COMPILE, *job.base, is_active=True)
    return Case(
        scenario=f"Rank {culprit} was seen once, in Inductor's code generation. The others wait in the step's all_reduce.",
        files=job.files,
        truth=missing(culprit, cause=Cause.COMPILE),
    )


def _collected(draw: Draw) -> tuple[Job, int]:
    job = Job(draw, draw.world(4, 16))
    culprit = draw.rank(job.ranks)
    job.step(3)
    return job, culprit


def _freed_by_the_collector(draw: Draw) -> Case:
    job, culprit = _collected(draw)
    library = "/opt/venv/lib/python3.11/site-packages/nvshmem/lib/libnvshmem_host.so.3"
    job.issue(Op.ALL_REDUCE, 64, ranks=job.others(culprit), is_done=False)
    job.stand(culprit, *job.base)
    frees = (
        native("nvshmem_free", library),
        native("SymmetricMemory::~SymmetricMemory", library),
        native("gc_collect_main", "python3.11"),
    )
    job.stand(culprit, *frees, *job.base, is_native=True)
    causes = (Cause.GC, Cause.NATIVE_CODE)
    answers = tuple(Answer(kind=Kind.MISSING_PARTICIPANT, cause=cause, culprits=(culprit,)) for cause in causes)
    return Case(
        scenario=(
            f"Rank {culprit}'s native stack is in `nvshmem_free`, below a destructor, below Python's garbage collector. "
            f"Freeing symmetric memory waits for all peers. The others wait in the step's all_reduce; rank {culprit}'s flight "
            "recorder shows nothing outstanding."
        ),
        files=job.files,
        truth=Truth(kind=Kind.COMM_STUCK, cause=Cause.FOREIGN_COMM, acceptable=(NOT_SURE, *answers)),
    )


def _barrier_in_destructor(draw: Draw) -> Case:
    job, culprit = _collected(draw)
    job.issue(Op.BARRIER, ranks=[culprit], at=job.at(Op.BARRIER, draw.own("__del__", "buffers.py")), is_done=False)
    job.issue(Op.ALL_REDUCE, 64, ranks=job.others(culprit), is_done=False)
    return Case(
        scenario=(
            f"Rank {culprit} waits in a barrier called from a `__del__`; the others at the same number in the step's "
            "all_reduce."
        ),
        files=job.files,
        truth=differing(culprit, by=Mismatch.OP),
    )


def _no_native_stack(draw: Draw) -> Case:
    job, culprit = _collected(draw)
    job.issue(Op.ALL_REDUCE, 64, ranks=job.others(culprit), is_done=False)
    job.stand(culprit, *job.base)
    return Case(
        scenario=(
            f"The others wait in the step's all_reduce. Rank {culprit}'s Python stack ends in `train_step`; no native stacks."
        ),
        files=job.files,
        truth=missing(culprit, cause=Cause.USER_CODE),
    )


_REACHED = (
    "successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank 0. "
    "Please check rank 0 logs"
)


def _barrier_names_rank_zero(draw: Draw) -> Case:
    job = Job(draw, draw.world(4, 16))
    for rank in job.ranks[1:]:
        job.log(rank, f"[rank{rank}]: RuntimeError: Rank {rank} {_REACHED} for faulty rank.\n")
    return Case(
        scenario=(
            "Only logs are left. Every rank but 0 says that it reached the monitored barrier and got an error from rank 0. "
            "Rank 0 logged nothing; what it was doing is not known."
        ),
        files=job.files,
        truth=replace(missing(0), acceptable=(NOT_SURE,)),
        is_ended_unsaid=True,
    )


def _barrier_names_several(draw: Draw) -> Case:
    job = Job(draw, draw.world(8, 32))
    absent = tuple(range(len(job.ranks) // 2, len(job.ranks)))
    names = ", ".join(map(str, absent))
    job.log(
        0,
        glog(0, 40, f"[Rank 0]: Ranks {names} failed to pass monitoredBarrier in 2000000 ms", file="ProcessGroupGloo.cpp:3101"),
    )
    return Case(
        scenario=f"Rank 0 logged that ranks {names} failed to pass the monitored barrier. Nothing else is left.",
        files=job.files,
        truth=replace(missing(*absent), acceptable=(NOT_SURE,)),
        is_ended_unsaid=True,
    )


def _rank_zero_says_nothing(draw: Draw) -> Case:
    job = Job(draw, draw.world(4, 16))
    victim = draw.rank(job.ranks[1:])
    text = "[/gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 25000ms for recv operation to complete"
    job.log(victim, f"[rank{victim}]: RuntimeError: {text}\n")
    return Case(
        scenario=f"Rank {victim} logged that gloo waited 25 s for a receive. Nothing says from whom, and nothing else is left.",
        files=job.files,
        truth=unknown_because("a victim's words only"),
        is_ended_unsaid=True,
    )


def _a_lone_victim_raises(draw: Draw) -> Case:
    job = Job(draw, draw.world(4, 16))
    victim = draw.rank(job.ranks)
    for rank in job.others(victim):
        job.log(rank, "step 12 done\n")
    job.log(victim, traceback(victim, "RuntimeError: Connection reset by peer", ("/app/train.py", 30, "main")))
    return Case(
        scenario=f"Rank {victim} raised `Connection reset by peer`. The logs of the others end after a step, without an error.",
        files=job.files,
        truth=unknown_because("a victim's words only"),
        is_ended_unsaid=True,
    )


def _dispatch_times_out(draw: Draw) -> Case:
    job = Job(draw, 16, backend="gloo")
    late = 8
    job.step(1)
    job.issue(Op.ALL_TO_ALL, 7168, ranks=job.others(*range(8, 16)), is_done=False)
    for rank in range(8):
        job.log(rank, f"[rank{rank}]: DeepEP timeout for dispatch CPU, rank {rank}, timeout (dispatch CPU)\n")
        job.look(rank)
    for rank in range(9, 16):
        job.issue(Op.ALL_TO_ALL, 7168, ranks=[rank], is_done=False)
        job.look(rank)
    job.stand(late, *COMPILE, *job.base)
    job.look(late)
    for sample, cpu_s in enumerate((30.0, 39.0)):
        children = (ChildProcess(pid=job.pid(late) + 500, name="nvcc", state="R", cpu_s=cpu_s),)
        job.see(late, sample, state="S", system_call="wait4", moved_bytes=10**9, cpu_s=900.0, children=children)
    return Case(
        scenario=(
            "The ranks of the first node log a time-out of the experts' dispatch. All ranks but 8 wait in the all_to_all; "
            "rank 8, first of the second node, compiles: its nvcc works between two looks."
        ),
        files=job.files,
        truth=slow(late, cause=Cause.COMPILE),
    )


def _dispatch_times_out_no_compiler(draw: Draw) -> Case:
    job = Job(draw, 16)
    for rank in range(8):
        job.log(rank, f"[rank{rank}]: DeepEP timeout for dispatch CPU, rank {rank}, timeout (dispatch CPU)\n")
    return Case(
        scenario="The ranks of the first node log a time-out of the experts' dispatch. Of the second node nothing is known.",
        files=job.files,
        truth=unknown_because("victims' words only", acceptable=(Answer(kind=Kind.COMM_STUCK, cause=Cause.FOREIGN_COMM),)),
        is_ended_unsaid=True,
    )


FAMILIES = (
    Family(
        number="C17",
        title="ranks compile differently",
        variants=(reported(_cache_hit), reported(_compilers_work), near_miss(_compilers_stuck), less_seen(_one_look)),
    ),
    Family(
        number="C19",
        title="a collective free out of the garbage collector",
        variants=(reported(_freed_by_the_collector), near_miss(_barrier_in_destructor), less_seen(_no_native_stack)),
    ),
    Family(
        number="C20",
        title="a monitored barrier names the absent",
        variants=(
            reported(_barrier_names_rank_zero, _LOG),
            near_miss(_barrier_names_several, _LOG),
            less_seen(_rank_zero_says_nothing, _LOG),
            less_seen(_a_lone_victim_raises, _LOG),
        ),
    ),
    Family(
        number="C92",
        title="dispatch times out while a node compiles",
        variants=(reported(_dispatch_times_out), less_seen(_dispatch_times_out_no_compiler, _LOG)),
    ),
)
