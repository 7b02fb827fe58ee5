"""What a fault is: a name, what it does to a healthy job, and what a right report says then."""

from collections.abc import Callable

from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.sim.instruction import Style
from pardbg.watchdog.sim.recipe import BACKENDS
from pardbg.watchdog.sim.scene import Scene
from pardbg.watchdog.sim.truth import NOT_SURE, Answer, Truth


class Expectation(Noun, frozen=True, kw_only=True):
    """The truth while all is seen, and how it changes when less is.

    ``is_proven_otherwise``: the culprits' stacks or process states alone show them. ``without_call_sites`` is the truth where
    the call sites of finished operations are not recorded, if that differs.
    """

    truth: Truth
    is_proven_otherwise: bool = False
    without_call_sites: Truth | None = None


def unnamed_members(scene: Scene) -> tuple[Answer, ...]:
    """What is honest too where a group has completed nothing yet: gloo's dumps do not say who belongs to it."""
    return (NOT_SURE,) if scene.is_gloo else ()


class Fault(Noun, frozen=True, kw_only=True):
    """One scenario. ``near_miss_of`` names the faults whose signs it shares and whose verdict it does not."""

    name: str
    summary: str
    stage: Callable[[Scene], Expectation]
    near_miss_of: tuple[str, ...] = ()
    backends: tuple[str, ...] = BACKENDS
    style: Style = Style()
