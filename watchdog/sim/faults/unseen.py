"""Recorders that are off, and files that are not there: not seeing a rank never makes it guilty."""

from pardbg.watchdog.sim.faults.absent import missing
from pardbg.watchdog.sim.faults.fault import Expectation, Fault
from pardbg.watchdog.sim.scene import Scene
from pardbg.watchdog.sim.truth import unknown_because


def _off(scene: Scene) -> Expectation:
    culprit = scene.pick_rank()
    scene.block(culprit)
    scene.recorders_off.add(culprit)
    note = f"rank {culprit} is to blame, but its recorder is off: nothing shows it"
    return Expectation(truth=unknown_because(note), is_proven_otherwise=True)


def _off_bystander(scene: Scene) -> Expectation:
    culprit, bystander = scene.pick_ranks(2)
    scene.block(culprit)
    scene.recorders_off.add(bystander)
    return Expectation(truth=missing(culprit, note=f"rank {bystander} is not seen; that says nothing of it"))


def _file_lost(scene: Scene) -> Expectation:
    culprit, bystander = scene.pick_ranks(2)
    scene.block(culprit)
    scene.missing.add(bystander)
    return Expectation(truth=missing(culprit, note=f"rank {bystander} left no dump; that says nothing of it"))


def _culprits_file_lost(scene: Scene) -> Expectation:
    culprit = scene.pick_rank()
    scene.block(culprit)
    scene.missing.add(culprit)
    return Expectation(truth=missing(culprit))


FAULTS = (
    Fault(
        name="recorder-off",
        summary="the missing rank's recorder is off: nobody can be blamed",
        stage=_off,
        near_miss_of=("missing-participant",),
    ),
    Fault(
        name="recorder-off-bystander",
        summary="an innocent rank's recorder is off while another is missing",
        stage=_off_bystander,
        near_miss_of=("two-faults",),
    ),
    Fault(
        name="missing-file",
        summary="an innocent rank's dump is lost while another is missing",
        stage=_file_lost,
        near_miss_of=("two-faults",),
    ),
    Fault(
        name="missing-culprit-file",
        summary="the missing rank's dump is lost: nobody can be blamed",
        stage=_culprits_file_lost,
        near_miss_of=("missing-participant",),
    ),
)
