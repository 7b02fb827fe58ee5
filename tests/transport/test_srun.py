"""Nodes of a real Slurm job through one srun: answers stay whole, who dies costs only its own, nothing stays."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.own_children import are_soon_gone, living_children
from tests.slurm.cluster import NOBODY, Cluster, as_user, running_cluster, why_not
from tests.transport.playing import PROGRAM, ask, data_of, open_descriptors, play, why

from pardbg.watchdog.transport.conversation import Conversation
from pardbg.watchdog.transport.srun import through_srun
from pardbg.watchdog.transport.way import Way

pytestmark = [pytest.mark.live, pytest.mark.skipif(bool(why_not()), reason=why_not())]

NODES = ("n1", "n2")


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """One for each test, since some stop its daemons: 1.5 s."""
    with running_cluster(node_timeout_s=60) as started:
        yield started


@pytest.fixture
def job(cluster: Cluster) -> Iterator[str]:
    """A job of both nodes that does nothing. In the end nothing of ours may be left, here or on a node."""
    made = cluster.submit("exec sleep 600", "--nodes=2", "--ntasks=2", "--mem=10")
    cluster.wait_for(made, "RUNNING")
    before, descriptors = living_children(), open_descriptors()
    yield made
    assert are_soon_gone(before | {cluster.pid_of(node) for node in NODES})
    assert open_descriptors() == descriptors
    until_s = time.monotonic() + 5.0
    while left := collectors(cluster):
        assert time.monotonic() < until_s, left
        time.sleep(0.05)


def collectors(cluster: Cluster) -> list[int]:
    """The nodes that run as its tasks."""
    return [pid for pid in cluster.processes() if str(PROGRAM).encode() in cmdline(pid)]


def cmdline(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def through(cluster: Cluster, job: str, command: tuple[str, ...] = play("good"), program: tuple[str, ...] = ("srun",)) -> Way:
    return through_srun(job, NODES, command, program, {**cluster.environment, "SLURM_NTASKS": "7", "SLURM_KILL_BAD_EXIT": "1"})


def test_both_nodes_answer_twenty_requests_through_one_srun(cluster: Cluster, job: str) -> None:
    with Conversation(through(cluster, job)) as conversation:
        for number in range(20):
            answers = data_of(ask(conversation, f"question {number}".encode(), 20.0))
            assert answers == {node: f"{node}:question {number}".encode() for node in NODES}
        assert data_of(ask(conversation, b"only you", 5.0, ["n2"])) == {"n2": b"n2:only you"}


@pytest.mark.slow
def test_large_requests_and_large_answers_at_once_stay_whole(cluster: Cluster, job: str) -> None:
    with Conversation(through(cluster, job)) as conversation:
        asked = os.urandom(500_000)
        answers = data_of(ask(conversation, asked, 30.0))
        assert answers == {node: node.encode() + b":" + asked for node in NODES}
        assert {len(data) for data in data_of(ask(conversation, b"bytes 2000000", 30.0)).values()} == {2_000_000}


@pytest.mark.slow
def test_a_task_that_dies_is_lost_at_once_and_alone(cluster: Cluster, job: str) -> None:
    with Conversation(through(cluster, job)) as conversation:
        ask(conversation, b"hello", 20.0)
        started_s = time.monotonic()
        answers = ask(conversation, b"die n2", 20.0)
        assert time.monotonic() - started_s < 5.0
        assert data_of(answers) == {"n1": b"n1:die n2"}
        assert why(answers, "n2") == "lost: srun: Killed"
        assert set(data_of(ask(conversation, b"hello", 20.0))) == {"n1"}


@pytest.mark.slow
def test_a_task_that_stops_answering_is_a_reason_and_no_hang(cluster: Cluster, job: str) -> None:
    with Conversation(through(cluster, job)) as conversation:
        pids = data_of(ask(conversation, b"pid", 20.0))
        os.kill(int(pids["n2"]), signal.SIGSTOP)
        answers = ask(conversation, b"hello", 2.0)
        assert set(data_of(answers)) == {"n1"}
        assert why(answers, "n2").startswith("timed-out: it came up")
        closing_s = time.monotonic()
    assert time.monotonic() - closing_s < 5.0


@pytest.mark.slow
def test_daemons_that_die_after_the_start_cost_nothing(cluster: Cluster, job: str) -> None:
    with Conversation(through(cluster, job)) as conversation:
        ask(conversation, b"hello", 20.0)
        cluster.kill("n2")
        assert set(data_of(ask(conversation, b"hello", 20.0))) == set(NODES)


def test_a_node_whose_daemon_does_not_answer_at_the_start_costs_only_itself(cluster: Cluster, job: str) -> None:
    os.kill(cluster.pid_of("n2"), signal.SIGSTOP)
    try:
        started_s = time.monotonic()
        with Conversation(through(cluster, job)) as conversation:
            answers = ask(conversation, b"hello", 30.0)
            assert data_of(answers) == {"n1": b"n1:hello"}
            assert why(answers, "n2").startswith("unreachable: srun could not start anything on it")
            assert time.monotonic() - started_s < 12.0
    finally:
        os.kill(cluster.pid_of("n2"), signal.SIGCONT)


@pytest.mark.slow
def test_a_job_that_is_not_ours_or_not_there_is_a_reason(cluster: Cluster, job: str) -> None:
    with Conversation(through(cluster, job, program=(*as_user(NOBODY), "srun"))) as conversation:
        answers = ask(conversation, b"hello", 20.0)
        assert why(answers, "n1").startswith("denied: srun: ")
        assert set(answers) == set(NODES)
    with Conversation(through(cluster, "999999")) as conversation:
        assert why(ask(conversation, b"hello", 20.0), "n2").startswith("gone: srun: ")


@pytest.mark.slow
def test_nodes_without_pardbg_say_what_to_give(cluster: Cluster, job: str) -> None:
    with Conversation(through(cluster, job, ("/nowhere/python", "collect"))) as conversation:
        answers = ask(conversation, b"hello", 20.0)
    for node in NODES:
        assert why(answers, node).startswith("not-installed: srun: ")
        assert "PARDBG_REMOTE" in why(answers, node)


def test_closing_ends_busy_tasks(cluster: Cluster, job: str) -> None:
    with Conversation(through(cluster, job)) as conversation:
        ask(conversation, b"hello", 20.0)
        conversation.ask(b"spin", time.monotonic() + 60.0)
        time.sleep(0.3)
    assert job
