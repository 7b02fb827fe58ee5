"""One sample of a world: processes, probes, stacks with their source lines, and flight recorders where they are reachable."""

import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace

from pardbg.collectors.live.host import look_at_processes
from pardbg.collectors.live.moment import now_rfc3339
from pardbg.collectors.live.probe.asked_stacks import Mute, ask_where_refused
from pardbg.collectors.live.probe.members import name_members
from pardbg.collectors.live.probe.probes import read_probes
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
    """What was seen at one moment. ``taken_at`` is RFC 3339, ``taken_at_s`` on the monotonic clock.

    ``refused_ranks`` may not be looked into from outside; ``mute`` have been asked for their stacks so far and not answered.
    """

    evidence: tuple[Evidence, ...]
    taken_at: str
    taken_at_s: float
    refused_ranks: frozenset[int] = frozenset()
    mute: frozenset[Mute] = frozenset()

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

    def without_recorders(self, ranks: Collection[int | None]) -> "Sample":
        """The same without what it says of the recorders of these ranks: they have been reached in another way since."""
        kept = (item for item in self.evidence if item.source is not CollectorName.FLIGHT_RECORDER or item.rank not in ranks)
        return replace(self, evidence=tuple(kept))

    def with_more(self, more: Iterable[Evidence]) -> "Sample":
        """The same with more evidence."""
        return replace(self, evidence=(*self.evidence, *more))


def take_sample(world: World, number: int, mute: Iterable[Mute] = ()) -> Sample:
    """Looks once at everything. Cost and deadlines: those of the collectors, which only read - where they may.

    Source lines belong to the sample, since only they tell a rank in ``work.wait()`` from one that computes.

    Args:
        world: whose ranks.
        number: of the sample.
        mute: the processes that have not answered earlier in this scan and are not to be asked again.
    """
    began_at, began_at_s, taken_at = time.time(), time.monotonic(), now_rfc3339()
    looked = look_at_processes(world.ranks, number, store=world.store)
    probes = read_probes(world.ranks, number)
    taken = take_stacks(world.ranks, number, looked, world_size=world.world_size)
    asked = ask_where_refused(taken, world.ranks, number, mute)
    recorders = name_members(reach_recorders(world, number, RECORDER_S, began_at), probes.groups)
    evidence = (*looked, *probes.evidence, *annotate_stacks(asked.evidence, world.ranks), *recorders)
    return Sample(evidence, taken_at, began_at_s, asked.refused, asked.mute)
