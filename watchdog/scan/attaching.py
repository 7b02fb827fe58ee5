"""The recorders of ranks that nobody prepared: whom a scan attaches to, and what it reads there.

Cost to a rank, and how it is left: see `collectors/attach/attaching.py`. Only ranks of a job that hangs, for long enough to say
so, and whose recorder nothing else gives access to. Deadline: `WITHIN_S` for all of them.
"""

import time
from collections.abc import Sequence
from enum import Enum

from msgspec.structs import replace

from pardbg.collectors.attach.attaching import attached
from pardbg.collectors.live.moment import now_rfc3339
from pardbg.collectors.live.probe.members import name_members
from pardbg.collectors.live.probe.probes import read_probes
from pardbg.collectors.live.recorders.reach import reach_recorders
from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.judge.judge import haste_of
from pardbg.watchdog.model.evidence import Absence, Evidence
from pardbg.watchdog.model.names import AbsenceReason, CollectorName
from pardbg.watchdog.model.world import RankProcess, World
from pardbg.watchdog.scan.site import Attachment

WITHIN_S = 15.0
RECORDER_S = 5.0
_PROCESS = "/proc/"


class Policy(str, Enum):
    """Whether a scan attaches: where a job hangs, whenever a recorder is out of reach, or not at all."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


def ranks_to_attach_to(situation: Situation, policy: Policy) -> tuple[int, ...]:
    """The ranks whose recorder is on as far as can be seen, and out of reach; those that only wait for others in front."""
    if policy is Policy.NEVER or (policy is Policy.AUTO and not _is_hung(situation)):
        return ()
    missed = {
        item.rank
        for item in situation.view.absences
        if item.source is CollectorName.FLIGHT_RECORDER
        and item.rank is not None
        and item.origin.startswith(_PROCESS)  # of a process that was found
        and isinstance(item.observation, Absence)
        and item.observation.reason is AbsenceReason.UNREACHABLE
    }
    waiting = frozenset(situation.waiting_ranks)
    return tuple(sorted(missed, key=lambda rank: (rank not in waiting, rank)))


def _is_hung(situation: Situation) -> bool:
    return situation.is_stuck and haste_of(situation) is None


def read_by_attaching(world: World, ranks: Sequence[RankProcess], sample: int, until_s: float, *, is_kept: bool) -> Attachment:
    """Attaches, reads and leaves: a recording or an absence for each rank.

    Args:
        world: of the ranks.
        ranks: whom to attach to, in this order.
        sample: the number of the sample that the recordings belong to.
        until_s: when to give up, on the monotonic clock.
        is_kept: whether a worker server is to stay in the ranks.
    """
    began_at = time.time()
    with attached(ranks, min(until_s, time.monotonic() + WITHIN_S)) as reached:
        inside = tuple(rank for rank in ranks if rank.rank in reached.ranks)
        probes = read_probes(inside, sample)
        recorders = reach_recorders(replace(world, ranks=inside), sample, RECORDER_S, began_at)
        kept = reached.keep(until_s) if is_kept else ()
    by_number = {rank.rank: rank for rank in ranks}
    absences = [_absence(by_number[number], absence) for number, absence in reached.refused.items()]
    pids = {rank.rank: rank.pid for rank in inside}
    named = (  # the file that it was read from is gone
        replace(item, origin=f"written by process {pids[item.rank]} when attached to") if item.rank in pids else item
        for item in name_members(recorders, probes.groups)
    )
    return Attachment((*named, *probes.evidence, *absences), len(kept))


def _absence(rank: RankProcess, absence: Absence) -> Evidence:
    return Evidence(
        source=CollectorName.FLIGHT_RECORDER,
        rank=rank.rank,
        host=rank.host,
        observed_at=now_rfc3339(),
        observation=absence,
        origin=f"/proc/{rank.pid}",
    )
