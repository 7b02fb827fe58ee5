"""Who is under care: jobs as they come and go, with real processes as ranks and a census that tells what the test says."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pardbg.collectors.procfs.stat import parse_stat
from pardbg.watchdog.agent.quiet import Limits
from pardbg.watchdog.agent.ward import Ward
from pardbg.watchdog.agent.wards import Wards
from pardbg.watchdog.agent.watch import Patience
from pardbg.watchdog.errors import InputError
from pardbg.watchdog.model.evidence import Evidence
from pardbg.watchdog.model.names import JobSource
from pardbg.watchdog.model.world import RankProcess, World
from pardbg.watchdog.transport.agent_names import resolve_all

Process = subprocess.Popen[bytes]


class Node:
    """A node, its processes, and the worlds that a census of it finds."""

    def __init__(self) -> None:
        self.processes: list[Process] = []
        self.worlds: tuple[World, ...] = ()
        self.left: list[str] = []
        self.now_s = 0.0
        self.wards = Wards("", Limits(), Patience(), lambda ward: self.left.append(ward.title), self.find)

    def find(self, _node: str) -> tuple[tuple[World, ...], tuple[Evidence, ...]]:
        """The census."""
        return self.worlds, ()

    def start(self, name: str, store: str = "n1:29500") -> World:
        """A job of one rank."""
        process = subprocess.Popen([sys.executable, "-c", "import threading; threading.Event().wait()"])
        self.processes.append(process)
        ticks = parse_stat(Path(f"/proc/{process.pid}/stat").read_text()).started_ticks
        rank = RankProcess(rank=0, pid=process.pid, started_ticks=ticks, host="here")
        return World(job_ids=((JobSource.RUN, name),), store=store, world_size=1, ranks=(rank,))

    def end(self, number: int) -> None:
        """Ends a process."""
        self.processes[number].kill()
        self.processes[number].wait()

    def look(self) -> list[Ward]:
        """A minute later: whatever happened, a census is due."""
        self.now_s += 61.0
        self.wards.look(self.now_s)
        return list(self.wards)


@pytest.fixture
def node() -> Iterator[Node]:
    """A node without a job."""
    made = Node()
    yield made
    made.wards.close()
    for number in range(len(made.processes)):
        made.end(number)


def test_jobs_come_and_go(node: Node) -> None:
    first, second = node.start("a"), node.start("b", "n1:29501")
    node.worlds = (first,)
    assert [ward.title for ward in node.look()] == ["a"]
    node.worlds = (first, second)
    assert [ward.title for ward in node.look()] == ["a", "b"]
    node.end(0)
    node.worlds = (second,)
    assert [ward.title for ward in node.look()] == ["b"]
    assert node.left == ["a"]


def test_job_that_a_census_does_not_see_is_kept_while_its_ranks_live(node: Node) -> None:
    node.worlds = (node.start("a"),)
    (before,) = node.look()
    node.worlds = ()

    assert node.look() == [before]
    node.end(0)
    assert node.look() == []


def test_next_job_on_the_same_port_is_another_one(node: Node) -> None:
    node.worlds = (node.start("a"),)
    node.look()
    node.end(0)
    node.worlds = (node.start("b"),)

    assert [ward.title for ward in node.look()] == ["b"]
    assert node.left == ["a"]


def test_two_containers_with_one_loopback_address_are_told_apart(node: Node) -> None:
    node.worlds = (node.start("a", "localhost:29500"), node.start("b", "localhost:29500"))

    assert len({ward.key for ward in node.look()}) == 2


def test_name_of_several_agents_is_resolved_and_no_name_is_an_error() -> None:
    assert "127.0.0.1" in {address.host for address in resolve_all("localhost:9475")}
    with pytest.raises(InputError):
        resolve_all("no-such-host.invalid:9475")
