"""A job's recordings: the steps that went well, then the last one. The past is one played step, repeated."""

import random
from collections.abc import Collection, Iterator

from pardbg.watchdog.sim.dump import Dump, silent_dump, whole_dump
from pardbg.watchdog.sim.engine import Host
from pardbg.watchdog.sim.layout import Group
from pardbg.watchdog.sim.processes import RANKS_PER_HOST
from pardbg.watchdog.sim.recorder import Recorder
from pardbg.watchdog.sim.scene import Scene

FIRST_STEP_NS = 1_795_000_000_000_000_000  # epoch ns; the job's first step
_STEP_GAP_NS = 20_000_000
_JITTER_NS = 400_000
_UNRECORDED_STEPS = 1_000  # with skew: what the rings have long overwritten
_CLOCK_ERROR_NS = 2_000_000_000

Hosts = dict[int, Host]


def record_job(scene: Scene, past: Hosts, last_step: Hosts, ranks: Collection[int] | None = None) -> Iterator[tuple[int, Dump]]:
    """The dump of every rank that leaves one, or of these of them."""
    period_ns = _STEP_GAP_NS + max(flight.completed_ns or 0 for host in past.values() for flight in host.flights)
    steps = _steps_in_rings(scene, past)
    errors_ns = _clock_errors_ns(scene)
    for rank, ring_size in _ring_sizes(scene).items():
        if rank in scene.missing or (ranks is not None and rank not in ranks):
            continue
        recorder = Recorder(rank, _local_ids(scene, rank), is_nccl=not scene.is_gloo, has_frames=scene.recipe.records_frames)
        skipped = _UNRECORDED_STEPS if scene.has_skew and scene.has_history else 0
        if skipped:
            recorder.skip([flight.launch for flight in past[rank].flights], skipped)
        clock_ns = FIRST_STEP_NS + skipped * period_ns + errors_ns[rank // RANKS_PER_HOST]
        for step in range(steps):
            _record_step(recorder, past[rank], clock_ns + step * period_ns, step)
        _record_step(recorder, last_step[rank], clock_ns + steps * period_ns, steps)
        is_off = rank in scene.recorders_off
        yield rank, silent_dump(scene.recipe) if is_off else whole_dump(scene.recipe, recorder, ring_size)


def _ring_sizes(scene: Scene) -> dict[int, int]:
    skew = random.Random(f"rings/{scene.recipe.seed}")
    sizes = {rank: scene.ring_sizes.get(rank, scene.recipe.entries) for rank in scene.ranks}
    return {rank: size - skew.randrange(size // 2 + 1) for rank, size in sizes.items()} if scene.has_skew else sizes


def _record_step(recorder: Recorder, host: Host, start_ns: int, step: int) -> None:
    start_ns += (host.rank * 7_919 + step * 104_729) % _JITTER_NS
    for flight in host.flights:
        done_ns = flight.reported_ns
        recorder.record(flight.launch, start_ns + flight.enqueued_ns, None if done_ns is None else start_ns + done_ns)


def _steps_in_rings(scene: Scene, past: Hosts) -> int:
    """As many whole steps as fit into a ring beside the last one, on the rank that issues most."""
    if not scene.has_history:
        return 0
    longest = max(
        sum(len(flight.launch.operations) + flight.launch.is_coalesced for flight in host.flights) for host in past.values()
    )
    return max(1, scene.recipe.entries // longest - 1)


def _clock_errors_ns(scene: Scene) -> list[int]:
    """Hosts' clocks are not the same; with skew they are visibly apart."""
    clocks = random.Random(f"clocks/{scene.recipe.seed}")
    bound_ns = _CLOCK_ERROR_NS if scene.has_skew else 0
    return [clocks.randint(-bound_ns, bound_ns) for _ in range(0, scene.layout.world_size, RANKS_PER_HOST)]


def _local_ids(scene: Scene, rank: int) -> dict[Group, int]:
    """A process numbers the groups it belongs to in the order of their creation."""
    groups = [*scene.layout.groups_by_axis(rank).values(), *scene.late_groups.get(rank, ())]
    return {group: local_id for local_id, group in enumerate(groups)}
