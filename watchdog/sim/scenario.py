"""Simulates a job by its recipe: sets the scene, lets the fault alter it, plays it, and collects what would be found."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from pardbg.watchdog.errors import InputError
from pardbg.watchdog.sim.dump import Dump
from pardbg.watchdog.sim.engine import Pace, play
from pardbg.watchdog.sim.faults import FAULTS
from pardbg.watchdog.sim.faults.fault import Fault
from pardbg.watchdog.sim.history import Hosts, record_job
from pardbg.watchdog.sim.processes import describe_job
from pardbg.watchdog.sim.recipe import Recipe
from pardbg.watchdog.sim.scene import Scene, set_scene
from pardbg.watchdog.sim.sight import truth_as_seen
from pardbg.watchdog.sim.stacks import stack_of
from pardbg.watchdog.sim.truth import Truth

SCENARIOS: Mapping[str, Fault] = MappingProxyType({fault.name: fault for fault in FAULTS})


@dataclass(frozen=True)
class SimulatedJob:
    """The evidence of one job, by global rank, and the truth about it. ``stacks`` are as py-spy's JSON."""

    recipe: Recipe
    dumps: dict[int, Dump]
    stacks: dict[int, list[dict[str, Any]]]
    logs: dict[int, str]
    job: dict[str, Any]
    truth: Truth


@dataclass(frozen=True)
class PlayedJob:
    """A job whose fault has been played. The dumps are made as they are needed: of a large job they are too much together."""

    recipe: Recipe
    scene: Scene
    past: Hosts
    last_step: Hosts
    truth: Truth

    def dumps(self, ranks: Collection[int] | None = None) -> Iterator[tuple[int, Dump]]:
        """The dumps of these ranks, of all if none are given; of those that leave one."""
        return record_job(self.scene, self.past, self.last_step, ranks)

    def stacks(self) -> dict[int, list[dict[str, Any]]]:
        """Where the living stand, if the scenario shows it."""
        living = {rank: host for rank, host in self.last_step.items() if not host.has_vanished and self.scene.shows_stacks}
        return {rank: stack_of(host) for rank, host in living.items()}


def play_job(recipe: Recipe) -> PlayedJob:
    """Plays the recipe's fault. Deterministic: equal recipes give equal jobs.

    Raises:
        InputError: if there is no such fault, or the job is not one in which it can occur.
    """
    recipe.check()
    fault = _find(recipe)
    scene = set_scene(recipe, fault.style)
    clean_programs = {rank: list(program) for rank, program in scene.programs.items()}
    expectation = fault.stage(scene)
    scene.missing.update(recipe.missing)
    pace = Pace(queue_depth=1) if scene.is_gloo else Pace()
    past, last_step = play(clean_programs, pace), play(scene.programs, pace)
    return PlayedJob(recipe, scene, past, last_step, truth_as_seen(expectation, recipe, frozenset(scene.missing)))


def simulate(recipe: Recipe) -> SimulatedJob:
    """Plays the recipe's fault, and collects all that it leaves.

    Raises:
        InputError: as `play_job`.
    """
    played = play_job(recipe)
    return SimulatedJob(
        recipe=recipe,
        dumps=dict(played.dumps()),
        stacks=played.stacks(),
        logs=dict(played.scene.logs),
        job=describe_job(played.scene),
        truth=played.truth,
    )


def near_misses(name: str) -> Iterator[Fault]:
    """The scenarios that share this one's signs, not its verdict."""
    return (fault for fault in FAULTS if name in fault.near_miss_of)


def _find(recipe: Recipe) -> Fault:
    fault = SCENARIOS.get(recipe.fault)
    if fault is None:
        raise InputError(f"there is no fault {recipe.fault!r}", remedy="see `pardbg sim --list`")
    if recipe.backend not in fault.backends:
        raise InputError(f"{fault.name} does not occur with {recipe.backend}: use --backend {fault.backends[0]}")
    return fault
