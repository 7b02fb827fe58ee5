"""The parts of a job that its nodes have found, put together."""

import pytest

from pardbg.collectors.jobs.query import ChosenJob
from pardbg.watchdog.model.names import JobSource
from pardbg.watchdog.model.world import EndedProcess, RankProcess, World
from pardbg.watchdog.scan.nodes.merging import merge
from pardbg.watchdog.scan.nodes.messages import Found

ONLY_BELIEVED, SEEN_TO_END = EndedProcess(rank=2), EndedProcess(rank=3, exit_code=-9)


@pytest.mark.parametrize(("is_whole", "ended"), [(True, [2, 3]), (False, [3])])
def test_rank_that_may_live_on_a_missing_node_is_called_dead_by_nobody(is_whole: bool, ended: list[int]) -> None:  # noqa: FBT001
    here = RankProcess(rank=0, pid=1, started_ticks=1, host="n1")
    world = World(world_size=4, ranks=(here,), ended=(ONLY_BELIEVED, SEEN_TO_END))
    found = {"n1": Found(chosen=ChosenJob(world=world, source=JobSource.SLURM, job_id="7"))}
    assert [one.rank for one in merge(found, is_whole=is_whole).world.ended] == ended
