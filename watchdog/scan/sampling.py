"""One sample of a world: processes, stacks with their source lines, and flight recorders where they are reachable."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from pardbg.collectors.live.host import look_at_processes
from pardbg.collectors.live.moment import now_rfc3339
from pardbg.collectors.live.recorders.reach import reach_recorders
from pardbg.collectors.live.sources import annotate_stacks
from pardbg.collectors.live.stacks import take_stacks
from pardbg.watchdog.model.evidence import Absence, Evidence
from pardbg.watchdog.model.names import AbsenceReason, CollectorName
from pardbg.watchdog.model.world import World

RECORDER_S = 5.0

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Sample:
    """What was seen at one moment. ``taken_at`` is RFC 3339, ``taken_at_s`` on the monotonic clock."""

    evidence: tuple[Evidence, ...]
    taken_at: str
    taken_at_s: float

    @property
    def lost_ranks(self) -> frozenset[int]:
        """The ranks whose processes are no longer those that were found."""
        return frozenset(
            item.rank
            for item in self.evidence
            if item.source is CollectorName.HOST
            and item.rank is not None
            and isinstance(item.observation, Absence)
            and item.observation.reason is AbsenceReason.GONE
        )


def take_sample(world: World, number: int) -> Sample:
    """Looks once at everything. Cost and deadlines: those of the four collectors, which only read.

    Source lines belong to the sample, since only they tell a rank in ``work.wait()`` from one that computes.
    """
    began_at, began_at_s, taken_at = time.time(), time.monotonic(), now_rfc3339()
    looked = look_at_processes(world.ranks, number, store=world.store)
    stacks = take_stacks(world.ranks, number, looked, world_size=world.world_size)
    recorders = reach_recorders(world, number, RECORDER_S, began_at)
    return Sample((*looked, *annotate_stacks(stacks, world.ranks), *recorders), taken_at, began_at_s)
