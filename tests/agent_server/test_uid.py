"""What looks on behalf of a user sees his processes alone, also through a real agent and a real `pardbg collect`."""

import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from pardbg.collectors.jobs.find import find_all_worlds, find_world
from pardbg.collectors.jobs.query import JobQuery
from pardbg.watchdog.agent.server.options import ServerOptions
from pardbg.watchdog.agent.server.server import AgentServer
from pardbg.watchdog.agent.ward import key_of
from pardbg.watchdog.errors import InputError
from pardbg.watchdog.model.names import JobSource
from pardbg.watchdog.model.watched import WatchedJob, WatchedRank
from pardbg.watchdog.model.world import World
from pardbg.watchdog.scan.nodes.messages import Find, Found, decode_reply, encode
from tests.agent_server.asking import ask_as
from tests.agent_server.shelf import OURS, Shelf

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")
NAME = f"uid-{os.getpid()}"


@pytest.fixture(scope="module")
def ranks() -> Iterator[list[int]]:
    """Rank 0 is a user's; rank 1, and a second rank 0, are of somebody who would like to see more of it."""
    started = []
    for rank, uid in ((0, OURS), (1, 4242), (0, 4242)):
        environment = {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "192.0.2.7", "MASTER_PORT": "29500"}
        words = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
        words += ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search", sys.executable, "-I", "-S", "-c"]
        code = "import time; print(1, flush=True); time.sleep(60)"
        process = subprocess.Popen([*words, code], env={**environment, "PARDBG_JOB": NAME}, stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        started.append(process)
        time.sleep(0.02)
    yield [process.pid for process in started]
    for process in started:
        process.kill()
        process.communicate()


def pids_seen(uid: int | None) -> list[int]:
    return [rank.pid for rank in find_world(JobQuery(job=f"run:{NAME}", uid=uid)).world.ranks]


def watched(world: World) -> WatchedJob:
    return WatchedJob(
        job_id=NAME,
        source=JobSource.RUN,
        names=world.job_ids,
        world=key_of(world),
        world_size=2,
        attempt=0,
        uids=tuple({rank.uid for rank in world.ranks}),
        state_since="",
        ranks=tuple(
            WatchedRank(rank=one.rank, pid=one.pid, started_ticks=one.started_ticks, uid=one.uid) for one in world.ranks
        ),
    )


def test_of_a_world_that_two_users_claim_each_sees_his_own(ranks: list[int]) -> None:
    ours, other, impostor = ranks
    assert pids_seen(None) == [impostor, other]
    assert pids_seen(OURS) == [ours]
    assert pids_seen(4242) == [impostor, other]
    with pytest.raises(InputError):
        pids_seen(4243)


def test_a_users_look_through_an_agent_sees_no_process_of_others(ranks: list[int], short: Path) -> None:
    worlds = [world for world in find_all_worlds()[0] if (JobSource.RUN, NAME) in world.job_ids]
    assert [{rank.uid for rank in world.ranks} for world in worlds] == [{OURS}, {4242}]
    path = short / "a.sock"
    with AgentServer(Shelf(tuple(map(watched, worlds))), ServerOptions(listen="", socket=path)):
        asked = encode(Find(within_s=20.0, job=f"run:{NAME}"))
        answer = ask_as(OURS, path, f"/v1/look?scan={uuid.uuid4()}", method="POST", body=asked)
        assert ask_as(4243, path, f"/v1/look?scan={uuid.uuid4()}", method="POST", body=asked).status == 403
    reply = decode_reply(answer.body)
    assert isinstance(reply, Found)
    assert reply.chosen is not None, reply.problem
    assert [rank.pid for rank in reply.chosen.world.ranks] == ranks[:1]
