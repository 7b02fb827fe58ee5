"""Processes that have ended."""

from pardbg.watchdog.model.names import Cause, Kind, Status
from pardbg.watchdog.sim.callsites import host_site
from pardbg.watchdog.sim.faults.fault import Expectation, Fault
from pardbg.watchdog.sim.instruction import Synchronize, Vanish
from pardbg.watchdog.sim.scene import ProcessState, Scene
from pardbg.watchdog.sim.truth import Truth

_SIGKILL, _SIGTERM, _EXCEPTION_EXIT = -9, -15, 1
_TRACEBACK = """\
[rank{rank}]: Traceback (most recent call last):
[rank{rank}]:   File "/app/train.py", line 302, in <module>
[rank{rank}]:     main()
[rank{rank}]:   File "/app/train.py", line 188, in train_step
[rank{rank}]:     loss = check_loss(loss)
[rank{rank}]:   File "/app/train.py", line 97, in check_loss
[rank{rank}]:     raise FloatingPointError(f"loss is {{loss}} at step 412")
[rank{rank}]: FloatingPointError: loss is nan at step 412
"""
_WATCHDOG = (
    "[rank{rank}]:[E1120 14:03:11.482 ProcessGroupNCCL.cpp:685] [Rank {rank}] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=41, OpType=ALLREDUCE, NumelIn=2, NumelOut=2, Timeout(ms)=600000) ran for 600012 milliseconds before "
    "timing out.\n"
)


def _end(scene: Scene, exit_code: int) -> int:
    """Ends one random rank half-way through the step. The dead write no dump."""
    rank = scene.pick_rank()
    scene.insert(rank, Synchronize(host_site("synchronize")), Vanish())
    scene.processes[rank] = ProcessState("gone", exit_code)
    scene.missing.add(rank)
    return rank


def _end_the_others(scene: Scene, first: int) -> None:
    """Torchrun ends the survivors."""
    for rank in scene.ranks:
        if rank != first:
            scene.processes[rank] = ProcessState("gone", _SIGTERM)


def _dead(rank: int, cause: Cause, status: Status) -> Expectation:
    truth = Truth(kind=Kind.DEAD_RANK, cause=cause, culprits=(rank,), victims_exclude=(rank,), status=status)
    return Expectation(truth=truth, is_proven_otherwise=True)


def _killed(scene: Scene) -> Expectation:
    rank = _end(scene, _SIGKILL)
    _end_the_others(scene, rank)
    return _dead(rank, Cause.SIGNAL, Status.FAILED)


def _raised(scene: Scene) -> Expectation:
    rank = _end(scene, _EXCEPTION_EXIT)
    _end_the_others(scene, rank)
    scene.logs[rank] = _TRACEBACK.format(rank=rank)
    victim = scene.pick_rank([other for other in scene.ranks if other != rank])
    scene.logs[victim] = _WATCHDOG.format(rank=victim)
    return _dead(rank, Cause.EXCEPTION, Status.FAILED)


def _killed_alone(scene: Scene) -> Expectation:
    return _dead(_end(scene, _SIGKILL), Cause.SIGNAL, Status.HUNG)


FAULTS = (
    Fault(name="dead-rank", summary="one process was killed (-9), the launcher ended the others (-15)", stage=_killed),
    Fault(
        name="dead-rank-exception", summary="one process raised (exit 1); a victim's watchdog complained first", stage=_raised
    ),
    Fault(
        name="dead-rank-job-hangs",
        summary="one process was killed, the others still wait",
        stage=_killed_alone,
        backends=("nccl",),
    ),
)
