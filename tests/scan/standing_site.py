"""A place where a job stands still: each look at it gives the same, as its ranks were made by hand."""

import time
from collections.abc import Collection, Mapping, Sequence

from msgspec.structs import replace

from pardbg.collectors.jobs.query import ChosenJob
from pardbg.watchdog.model.evidence import Absence, Evidence, JobDescription
from pardbg.watchdog.model.names import CollectorName, JobSource
from pardbg.watchdog.model.reach import NO_WAY, Reach
from pardbg.watchdog.model.wanted import Cut, Wanted
from pardbg.watchdog.model.world import RankProcess, World
from pardbg.watchdog.scan.sample import Sample
from pardbg.watchdog.scan.site import Attachment
from tests.diagnosis.live_evidence import WHEN, LiveJob

RANKS_PER_HOST = 2


def host_of(rank: int) -> str:
    """n1 has ranks 0 and 1, n2 the next two."""
    return f"n{rank // RANKS_PER_HOST + 1}"


def placed(job: LiveJob) -> list[Evidence]:
    """What was seen of the job's ranks, on their hosts; recorders cannot be reached."""
    seen = [item for item in job.evidence() if not isinstance(item.observation, JobDescription)]
    return [_place(item, item.rank or 0) for item in seen]


def _place(item: Evidence, rank: int) -> Evidence:
    origin = f"/proc/{1000 + rank}" if isinstance(item.observation, Absence) else item.origin
    return replace(item, host=host_of(rank), origin=origin)


class StandingSite:
    """See `Site`."""

    where = "the nodes that answered"
    remarks: tuple[str, ...] = ()

    def __init__(self, job: LiveJob, silent: Mapping[str, Absence] | None = None, reach: Reach = NO_WAY) -> None:
        """``silent``: hosts that did not answer, and why."""
        self.silent, self.reach = silent or {}, reach
        self._job = job

    def find(self) -> ChosenJob:
        """The ranks that answer."""
        ranks = [RankProcess(rank=rank, pid=1000 + rank, started_ticks=1, host=host_of(rank)) for rank in self._job.seen]
        world = World(world_size=self._job.world_size or len(ranks), ranks=tuple(ranks))
        return ChosenJob(world=world, source=JobSource.SLURM, job_id="7")

    def sample(self, number: int, until_s: float) -> Sample:
        """The look of that number."""
        del until_s
        seen = (item for item in placed(self._job) if getattr(item.observation, "sample", number) == number)
        silent = (
            Evidence(source=CollectorName.HOST, rank=None, host=host, observation=absence, origin=host)
            for host, absence in self.silent.items()
        )
        return Sample((*seen, *silent), WHEN, time.monotonic())

    def attach(self, ranks: Sequence[int], sample: int, until_s: float, *, is_kept: bool) -> Attachment:
        """Nobody is attached to."""
        raise AssertionError((ranks, sample, until_s, is_kept))

    def software(self, until_s: float) -> tuple[Evidence, ...]:
        """None."""
        del until_s
        return ()

    def entries(self, wanted: Sequence[Wanted], until_s: float) -> tuple[Cut, ...]:
        """None."""
        del wanted, until_s
        return ()

    def logs(self, until_s: float) -> tuple[Evidence, ...]:
        """None."""
        return self.software(until_s)

    def routing(self) -> tuple[Evidence, ...]:
        """None."""
        return ()

    def fault_stacks(self, ranks: Collection[int], until_s: float) -> tuple[Evidence, ...]:
        """None."""
        del ranks
        return self.software(until_s)

    def native_stacks(self, ranks: Collection[int], sample: int, until_s: float) -> tuple[Evidence, ...]:
        """None."""
        del ranks, sample
        return self.software(until_s)
