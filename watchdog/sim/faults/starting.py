"""Jobs that never get past the first operation."""

from msgspec.structs import replace

from pardbg.watchdog.model.names import Kind
from pardbg.watchdog.sim.faults.fault import Expectation, Fault
from pardbg.watchdog.sim.instruction import Op
from pardbg.watchdog.sim.program import START, alone, collective
from pardbg.watchdog.sim.scene import Scene
from pardbg.watchdog.sim.truth import NOT_SURE, Answer, Truth


def _absent(scene: Scene) -> int:
    """One rank is still on its way to the first barrier, so its recorder has not written anything."""
    culprit = scene.pick_rank()
    scene.has_history = False
    scene.block(culprit, "index", START)
    for rank in scene.ranks:
        scene.insert(rank, alone(collective(scene.world, Op.BARRIER, "init"), "init"), mark=START)
    return culprit


def _with_stacks(scene: Scene) -> Expectation:
    culprit = _absent(scene)
    scene.shows_stacks = True
    truth = Truth(kind=Kind.INIT_STUCK, culprits=(culprit,), victims_exclude=(culprit,), note="it builds a data set index")
    return Expectation(truth=truth, is_proven_otherwise=True)


def _unseen(scene: Scene) -> Expectation:
    culprit = _absent(scene)
    truth = Truth(
        kind=Kind.INIT_STUCK,
        acceptable=(NOT_SURE, Answer(kind=Kind.INIT_STUCK, culprits=(culprit,))),
        note=f"rank {culprit} has recorded nothing: its recorder could as well be off",
    )
    return Expectation(truth=replace(truth, victims_exclude=(culprit,)), is_proven_otherwise=True)


FAULTS = (
    Fault(
        name="init-stuck",
        summary="one rank never reaches the job's first operation; its stack shows where it is",
        stage=_with_stacks,
    ),
    Fault(
        name="init-stuck-unseen",
        summary="the same without stacks: nobody can be blamed",
        stage=_unseen,
        near_miss_of=("init-stuck",),
    ),
)
