"""Jobs without a fault that look as if they had one."""

from pardbg.watchdog.sim.faults.fault import Expectation, Fault
from pardbg.watchdog.sim.instruction import Style
from pardbg.watchdog.sim.scene import Scene
from pardbg.watchdog.sim.truth import HEALTHY


def _nothing(_: Scene) -> Expectation:
    return Expectation(truth=HEALTHY)


def _skewed(scene: Scene) -> Expectation:
    scene.has_skew = True
    return Expectation(truth=HEALTHY)


def _uneven(scene: Scene) -> Expectation:
    scene.pick_group(2, ("ep",))
    return Expectation(truth=HEALTHY)


def _branching(scene: Scene) -> Expectation:
    scene.pick_group(2, ("tp",))
    return Expectation(truth=HEALTHY)


FAULTS = (
    Fault(name="healthy", summary="nothing is outstanding", stage=_nothing),
    Fault(
        name="healthy-skewed-windows",
        summary="rings have wrapped at different places, clocks are apart, nothing is outstanding",
        stage=_skewed,
        near_miss_of=("missing-participant",),
    ),
    Fault(
        name="healthy-uneven-all-to-all",
        summary="the experts' all_to_all has another size on every rank",
        stage=_uneven,
        near_miss_of=("desync-size",),
    ),
    Fault(
        name="healthy-branch-call-sites",
        summary="the root broadcasts from a line of its own in every step",
        stage=_branching,
        near_miss_of=("desync-extra",),
        style=Style(root_has_own_call_site=True),
    ),
)
