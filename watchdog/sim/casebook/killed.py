"""Ranks that are dead: killed (C35, C37), hidden behind the noise of others (C38, C40), or failed at the start (C41)."""

from pardbg.watchdog.model.names import Cause, CollectorName, Kind, Status
from pardbg.watchdog.sim.casebook.case import Case, Family, less_seen, near_miss, reported
from pardbg.watchdog.sim.casebook.compiling import slow
from pardbg.watchdog.sim.casebook.draw import Draw
from pardbg.watchdog.sim.casebook.job import Job
from pardbg.watchdog.sim.casebook.lines import broken_pipe, local_end, oom_kill, torchrun_report, traceback
from pardbg.watchdog.sim.casebook.places import LAUNCH_TOP, LOAD
from pardbg.watchdog.sim.instruction import Op
from pardbg.watchdog.sim.truth import NOT_SURE, Answer, Truth, unknown_because

_LOG, _KERNEL = CollectorName.RANK_LOG, CollectorName.KERNEL_LOG


def dead(*ranks: int, cause: Cause | None, status: Status = Status.FAILED, also: tuple[tuple[int, ...], ...] = ()) -> Truth:
    """The truth of ranks that went first."""
    return Truth(kind=Kind.DEAD_RANK, cause=cause, culprits=ranks, victims_exclude=ranks, status=status, also=also)


def _killed(draw: Draw, code: int = -9) -> tuple[Job, int]:
    """One node; the launcher's report names the first failure, and pids."""
    job = Job(draw, 8)
    culprit = draw.rank(job.ranks)
    codes = {rank: code if rank == culprit else -15 for rank in job.ranks}
    job.has_job_file = False
    job.file("torchrun.log", torchrun_report(job.host(0), codes, culprit, {rank: job.pid(rank) for rank in job.ranks}))
    return job, culprit


def _sender_unknown(draw: Draw) -> Case:
    job, culprit = _killed(draw)
    return Case(
        scenario=(
            f"torchrun reports exit code -9 (SIGKILL) for rank {culprit} first and -15 for the others. The kernel log is not "
            "there."
        ),
        files=job.files,
        truth=dead(culprit, cause=Cause.SIGNAL),
    )


def _kernel_killed_it(draw: Draw) -> Case:
    job, culprit = _killed(draw)
    job.kernel(job.host(0), oom_kill(job.pid(culprit), 12.5))
    return Case(
        scenario=(
            f"torchrun reports exit code -9 (SIGKILL) for rank {culprit}, pid {job.pid(culprit)}, and -15 for the others. The "
            f"kernel log of the host says that process {job.pid(culprit)} was killed because its cgroup ran out of memory."
        ),
        files=job.files,
        truth=dead(culprit, cause=Cause.OOM_KILLED),
    )


def _kernel_killed_another(draw: Draw) -> Case:
    job, culprit = _killed(draw)
    job.kernel(job.host(0), oom_kill(977, 12.5, name="java", group="/system.slice/kafka.service"))
    return Case(
        scenario=(
            f"torchrun reports exit code -9 (SIGKILL) for rank {culprit}, pid {job.pid(culprit)}, and -15 for the others. The "
            "kernel log says that a Java process of another service, pid 977, was killed for memory."
        ),
        files=job.files,
        truth=dead(culprit, cause=Cause.SIGNAL),
    )


def _report_cut_off(draw: Draw) -> Case:
    job = Job(draw, 8)
    killed = draw.rank(job.ranks)
    job.has_job_file = False
    job.file("torchrun.log", local_end(killed, -9, job.pid(killed)))
    return Case(
        scenario=(
            f"torchrun logs that the process of local rank {killed} ended with -9 (SIGKILL). Its report, which names global "
            "ranks, is cut off, and nothing tells how many hosts there are."
        ),
        files=job.files,
        truth=Truth(kind=Kind.DEAD_RANK, cause=Cause.SIGNAL, status=Status.FAILED),
    )


def _two_launchers_report_kills(draw: Draw) -> Case:
    job = Job(draw, 8)
    killed = draw.ranks(2, job.ranks)
    job.has_job_file = False
    for number, rank in enumerate(killed):
        job.file(f"torchrun_{number}.log", local_end(rank, -9, job.pid(rank)))
    return Case(
        scenario="The launchers of two hosts each log that a process ended with -9 (SIGKILL). Which was the first is not told.",
        files=job.files,
        truth=unknown_because("all were killed from outside"),
        is_ended_unsaid=True,
    )


def _codes_known(draw: Draw) -> Case:
    job = Job(draw, draw.world(4, 32))
    culprit = draw.rank(job.ranks)
    job.step(2)
    for rank in job.ranks:
        job.end(rank, -9 if rank == culprit else -15)
    return Case(
        scenario=f"All processes have ended: rank {culprit} with -9, the others with -15. Nothing else is left.",
        files=job.files,
        truth=dead(culprit, cause=Cause.SIGNAL),
    )


def _memory_at_the_save(draw: Draw) -> Case:
    job = Job(draw, draw.world(16, 64))
    culprit = draw.rank(job.ranks)
    job.step(3)
    job.issue(Op.BARRIER, ranks=job.others(culprit), is_done=False)
    job.end(culprit, 137)
    job.kernel(job.host(culprit), oom_kill(job.pid(culprit), 44.0))
    return Case(
        scenario=(
            f"During a checkpoint the process of rank {culprit} ended with 137. The kernel log of its host says that this "
            "process was killed for memory. The others wait in a barrier."
        ),
        files=job.files,
        truth=dead(culprit, cause=Cause.OOM_KILLED, status=Status.HUNG),
    )


def _memory_log_lost(draw: Draw) -> Case:
    job = Job(draw, draw.world(16, 64))
    culprit = draw.rank(job.ranks)
    job.step(3)
    job.issue(Op.BARRIER, ranks=job.others(culprit), is_done=False)
    job.end(culprit, 137)
    return Case(
        scenario=f"The process of rank {culprit} ended with 137; no kernel log was read. The others wait in a barrier.",
        files=job.files,
        truth=dead(culprit, cause=Cause.SIGNAL, status=Status.HUNG),
    )


def restoring(draw: Draw, *, moved: int | None) -> tuple[Job, int]:
    """After a restart one rank still reads its checkpoint; the others are in the barrier after it."""
    job = Job(draw, draw.world(8, 64), backend="gloo")
    late = draw.rank(job.ranks)
    job.issue(Op.ALL_REDUCE, 1)
    job.issue(Op.BARRIER, ranks=job.others(late), at=job.at(Op.BARRIER, draw.own("after_restore", "restore.py")), is_done=False)
    job.stand(late, *LOAD, draw.own("restore", "restore.py"), *job.base[2:])
    if moved is not None:
        for rank in job.others(late):
            job.look(rank, seconds_apart=60.0)
        job.look(late, seconds_apart=60.0, moved_bytes=moved, voluntary_switches=900)
    return job, late


def _still_restoring(draw: Draw) -> Case:
    job, late = restoring(draw, moved=draw.number(10**6, 10**9))
    return Case(
        scenario=(
            f"After a restart all ranks but {late} wait in the barrier behind the restore, without output for hours. Rank "
            f"{late} is in `torch.load`; between two looks a minute apart it read more bytes."
        ),
        files=job.files,
        truth=slow(late, cause=Cause.CHECKPOINT_IO),
    )


def _illegal_access(draw: Draw) -> tuple[Job, int]:
    job = Job(draw, draw.world(4, 16))
    culprit = draw.rank(job.ranks[1:])
    error = "torch.AcceleratorError: CUDA error: an illegal memory access was encountered"
    job.log(culprit, traceback(culprit, error, (f"{draw.app}/model.py", 311, "attention")))
    for rank in job.others(culprit):
        job.log(rank, broken_pipe(rank, 3.2 + rank / 100))
    return job, culprit


def _first_error_first(draw: Draw) -> Case:
    job, culprit = _illegal_access(draw)
    job.file(
        "ray_head.log",
        "(raylet) A worker died or was killed while executing a task by an unexpected system error. Potential root causes: "
        "(1) The process is killed by the OOM killer due to high memory usage.\n",
    )
    return Case(
        scenario=(
            f"Rank {culprit} logged a traceback that ends in an illegal memory access. Three seconds later the others log that "
            "the store's connection broke. Ray says that a worker died, possibly of memory."
        ),
        files=job.files,
        truth=dead(culprit, cause=Cause.EXCEPTION),
        is_ended_unsaid=True,
    )


def _only_consequences(draw: Draw) -> Case:
    job = Job(draw, draw.world(4, 16))
    for rank in job.ranks[1:]:
        job.log(rank, broken_pipe(rank, 3.2 + rank / 100))
    return Case(
        scenario="All ranks but 0 log that the connection to the store broke. Rank 0, which runs the store, logged nothing.",
        files=job.files,
        truth=unknown_because("consequences only", acceptable=(Answer(kind=Kind.DEAD_RANK, culprits=(0,)),)),
        is_ended_unsaid=True,
    )


_SEND = "[/gloo/transport/tcp/unbound_buffer.cc:116] Timed out waiting 1800000ms for send operation to complete"


def _raised_before_the_timeout(draw: Draw) -> Case:
    job = Job(draw, 4)
    culprit, launching, waiting = draw.ranks(3, job.ranks)
    job.log(culprit, traceback(culprit, "ValueError: sequence 17 is empty", (f"{draw.app}/engine.py", 207, "run_batch")))
    job.log(waiting, f"2026-11-29 14:33:00 [rank{waiting}]: RuntimeError: {_SEND}\n")
    job.stand(launching, *LAUNCH_TOP, draw.own("train_step"), *job.base[1:], is_native=True)
    return Case(
        scenario=(
            f"Rank {culprit} logged a traceback of its own (an empty sequence). Half an hour later rank {waiting} logged that "
            f"gloo waited 1800 s for a send. Rank {launching} is in a kernel launch that does not return."
        ),
        files=job.files,
        truth=dead(culprit, cause=Cause.EXCEPTION),
        is_ended_unsaid=True,
    )


def _only_the_timeout(draw: Draw) -> Case:
    job = Job(draw, 4)
    waiting = draw.rank(job.ranks)
    job.log(waiting, f"2026-11-29 14:33:00 [rank{waiting}]: RuntimeError: {_SEND}\n")
    return Case(
        scenario=f"Rank {waiting} logged that gloo waited 1800 s for a send. Nothing else is left.",
        files=job.files,
        truth=unknown_because("a victim's words only"),
        is_ended_unsaid=True,
    )


def _starting(draw: Draw, *, warns: bool) -> tuple[Job, int]:
    job = Job(draw, 16)
    culprit = draw.rank(job.ranks)
    for rank in job.ranks:
        job.nccl_comm(rank, "Init START")
        if warns and rank == culprit:
            job.nccl(rank, "Cuda failure 2 'out of memory'", level="WARN")
            job.nccl(rank, "init.cc:1358 -> 1")
    return job, culprit


def _memory_at_the_start(draw: Draw) -> Case:
    job, culprit = _starting(draw, warns=True)
    answers = (Answer(kind=Kind.DEAD_RANK, cause=Cause.EXCEPTION, culprits=(culprit,)), Answer(kind=Kind.INIT_STUCK))
    return Case(
        scenario=(
            f"Sixteen ranks log that NCCL's set-up starts; none logs that it is complete. Rank {culprit} logs a CUDA "
            "out-of-memory warning inside it. All processes live."
        ),
        files=job.files,
        truth=Truth(kind=Kind.INIT_STUCK, culprits=(culprit,), acceptable=answers),
        is_ended_unsaid=True,
    )


def _nobody_complete(draw: Draw) -> Case:
    job, _ = _starting(draw, warns=False)
    return Case(
        scenario="Sixteen ranks log that NCCL's set-up starts; none logs that it is complete, and there is no warning.",
        files=job.files,
        truth=Truth(kind=Kind.INIT_STUCK, acceptable=(Answer(kind=Kind.INIT_STUCK, cause=Cause.BOOTSTRAP), NOT_SURE)),
        is_ended_unsaid=True,
    )


FAMILIES = (
    Family(
        number="C35",
        title="SIGKILL with no message",
        variants=(
            reported(_sender_unknown, _LOG),
            near_miss(_kernel_killed_it, _LOG, _KERNEL),
            near_miss(_kernel_killed_another, _LOG, _KERNEL),
            near_miss(_two_launchers_report_kills, _LOG),
            less_seen(_report_cut_off, _LOG),
            less_seen(_codes_known),
        ),
    ),
    Family(
        number="C37",
        title="memory at the checkpoint, then a slow restore",
        variants=(reported(_memory_at_the_save, _KERNEL), near_miss(_still_restoring), less_seen(_memory_log_lost)),
    ),
    Family(
        number="C38",
        title="the launcher hides the first error",
        variants=(reported(_first_error_first, _LOG), near_miss(_only_consequences, _LOG)),
    ),
    Family(
        number="C40",
        title="a launch never returns after a peer's exception",
        variants=(reported(_raised_before_the_timeout, _LOG), less_seen(_only_the_timeout, _LOG)),
    ),
    Family(
        number="C41",
        title="out of memory while a communicator is set up",
        variants=(reported(_memory_at_the_start, _LOG), near_miss(_nobody_complete, _LOG)),
    ),
)
