"""One conversation with many nodes that are real processes: every node has one answer, by the deadline, and nothing stays."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.own_children import are_soon_gone, living_children
from tests.transport.node_program import BEHAVIOURS
from tests.transport.playing import ask, data_of, open_descriptors, play, through_one, through_plays, why

from pardbg.watchdog.transport.conversation import Conversation
from pardbg.watchdog.transport.local import through_local
from pardbg.watchdog.transport.patience import LEAST_S
from pardbg.watchdog.transport.srun import through_srun
from pardbg.watchdog.transport.way import Launch, Way

GOOD = {
    "good": b"good:hello",
    "banner": b"banner:hello",
    "slow_start": b"slow_start:hello",
    "backwards": b"backwards",
    "minor": b"minor",
}
REASONS = {
    "dead": ("unreachable", "cannot start today"),
    "mid_answer": ("lost", "ended by signal 9"),
    "silent": ("timed-out", "no word from it"),
    "deaf": ("timed-out", "it came up, and gave no answer and no sign of life for"),
    "rubbish": ("timed-out", "foreign lines"),
    "huge_of": ("unreadable", "1000000000"),
    "bomb": ("unreadable", "unpacks to more than"),
    "endless": ("unreadable", "without end"),
    "endless_lines": ("unreadable", "without end"),
    "endless_parts": ("unreadable", "larger than"),
    "impostor": ("unreadable", "in the name of 'somebody-else'"),
    "newer": ("unsupported", "start the same pardbg there"),
}
LATE_S = 1.0  # what a loaded test machine may add to a deadline


@pytest.fixture(autouse=True)
def _leaves_nothing() -> Iterator[None]:
    before, descriptors = living_children(), open_descriptors()
    yield
    assert are_soon_gone(before)
    assert open_descriptors() == descriptors


def test_every_behaviour_ends_in_an_answer_or_its_own_reason_and_costs_nobody_else_an_answer() -> None:
    assert set(BEHAVIOURS) == set(GOOD) | set(REASONS)
    started_s = time.monotonic()
    with Conversation(through_plays({name: name for name in BEHAVIOURS}, most_starting=32)) as conversation:
        answers = ask(conversation, b"hello", 8.0)
        assert time.monotonic() - started_s < 8.0 + LATE_S
    assert data_of(answers) == GOOD
    for name, (reason, words) in REASONS.items():
        assert why(answers, name).startswith(f"{reason}: ")
        assert words in why(answers, name)
        assert why(answers, name).isprintable()


def test_the_same_through_one_pipe_costs_nobody_else_an_answer() -> None:
    names = {name: name for name in BEHAVIOURS if not name.startswith("endless")}
    with Conversation(through_one(names)) as conversation:
        answers = ask(conversation, b"hello", 8.0)
    assert data_of(answers) == GOOD
    assert set(answers) == set(names)
    assert "foreign lines" in why(answers, "silent")


def test_a_node_that_never_ends_its_line_costs_nobody_else_an_answer() -> None:
    with Conversation(through_one({"n1": "good", "n2": "endless", "n3": "good"})) as conversation:
        for number in range(3):
            answers = ask(conversation, b"bytes 20000", 8.0, ["n1", "n3"])
            assert {node: len(data) for node, data in data_of(answers).items()} == {"n1": 20000, "n3": 20000}, number


def test_twenty_requests_over_eight_nodes_take_one_start() -> None:
    nodes = [f"n{number}" for number in range(8)]
    with Conversation(through_plays(dict.fromkeys(nodes, "good"))) as conversation:
        pids = data_of(ask(conversation, b"pid", 20.0))
        started_s = time.monotonic()
        for number in range(20):
            asked = f"question {number} " + "x" * 5000
            assert data_of(ask(conversation, asked.encode(), 10.0)) == {node: f"{node}:{asked}".encode() for node in nodes}
        assert time.monotonic() - started_s < 5.0
        assert data_of(ask(conversation, b"pid", 5.0)) == pids


@pytest.mark.slow
def test_256_nodes_answer() -> None:
    nodes = [f"n{number}" for number in range(256)]
    with Conversation(through_plays(dict.fromkeys(nodes, "good"), most_starting=16)) as conversation:
        assert set(data_of(ask(conversation, b"hello", 120.0))) == set(nodes)
        started_s = time.monotonic()
        answers = data_of(ask(conversation, b"bytes 16384", 20.0))
        assert {len(data) for data in answers.values()} == {16384}
        assert len(answers) == 256
        assert time.monotonic() - started_s < 10.0


@pytest.mark.slow
def test_five_bad_nodes_in_a_hundred_cost_the_others_nothing_and_later_requests_no_time() -> None:
    seeded = random.Random(5)
    nodes = [f"n{number}" for number in range(200)]
    bad = dict(zip(seeded.sample(nodes, 10), ["dead", "silent", "deaf", "rubbish", "endless_lines"] * 2, strict=True))
    with Conversation(through_plays(dict.fromkeys(nodes, "good") | bad, most_starting=16)) as conversation:
        answers = ask(conversation, b"hello", 40.0)
        assert set(data_of(answers)) == set(nodes) - set(bad)
        assert len(answers) == 200
        started_s = time.monotonic()
        for _ in range(5):
            assert set(data_of(ask(conversation, b"again", 30.0))) == set(nodes) - set(bad)
        assert time.monotonic() - started_s < 15.0


def test_only_those_asked_answer_and_strangers_cannot_be_asked() -> None:
    with Conversation(through_one(dict.fromkeys(["n1", "n2", "n3"], "good"))) as conversation:
        assert data_of(ask(conversation, b"hello", 20.0, ["n2"])) == {"n2": b"n2:hello"}
        assert data_of(ask(conversation, b"all", 5.0)) == {node: node.encode() + b":all" for node in ("n1", "n2", "n3")}
        assert ask(conversation, b"none", 5.0, []) == {}
        with pytest.raises(KeyError):
            ask(conversation, b"who", 5.0, ["n9"])


def test_a_node_that_is_busy_says_so_in_time_and_the_next_request_does_not_wait_for_it() -> None:
    with Conversation(through_plays({"n1": "good", "n2": "good"})) as conversation:
        ask(conversation, b"hello", 20.0)
        started_s = time.monotonic()
        first = conversation.ask(b"sleep 4", started_s + 2.0, ["n1"])
        ((answer),) = list(first)
        assert answer.absence is not None
        assert "not ready in time" in answer.absence.detail
        assert time.monotonic() - started_s < 2.0
        both = ask(conversation, b"quick", 1.0)
        assert data_of(both) == {"n2": b"n2:quick"}
        assert time.monotonic() - started_s < 2.5
        time.sleep(max(0.0, started_s + 4.5 - time.monotonic()))
        assert set(data_of(ask(conversation, b"now", 5.0))) >= {"n2"}
        time.sleep(LATE_S)
        assert set(data_of(ask(conversation, b"and now", 5.0))) == {"n1", "n2"}


def test_a_node_that_falls_silent_costs_seconds_once_a_busy_one_is_waited_for_and_who_wakes_up_counts_again() -> None:
    """What is asked: 20 s of everybody. ``n1`` is stopped; ``n2`` works for longer than a silent node is waited for."""
    nodes = ["n1", "n2", "n3", "n4"]
    with Conversation(through_plays(dict.fromkeys(nodes, "good"))) as conversation:
        pid = int(data_of(ask(conversation, b"pid", 20.0))["n1"])
        os.kill(pid, signal.SIGSTOP)
        started_s = time.monotonic()
        answers = ask(conversation, b"sleep 4.5 n2", 20.0)
        assert set(data_of(answers)) == {"n2", "n3", "n4"}
        assert "no sign of life" in why(answers, "n1")
        assert 4.5 < time.monotonic() - started_s < 4.5 + LATE_S
        again_s = time.monotonic()
        assert set(data_of(ask(conversation, b"hello", 20.0))) == {"n2", "n3", "n4"}
        assert why(ask(conversation, b"hello", 20.0, ["n1"]), "n1").startswith("timed-out: it had not answered an earlier")
        assert time.monotonic() - again_s < LEAST_S + LATE_S
        os.kill(pid, signal.SIGCONT)
        data_of(ask(conversation, b"sleep 0.5", 20.0))
        assert set(data_of(ask(conversation, b"hello", 20.0))) == set(nodes)


def test_a_node_that_ends_between_two_requests_stays_lost_at_once() -> None:
    with Conversation(through_plays({"n1": "good", "n2": "good"})) as conversation:
        answers = ask(conversation, b"die n2", 20.0)
        assert data_of(answers) == {"n1": b"n1:die n2"}
        started_s = time.monotonic()
        for _ in range(3):
            answers = ask(conversation, b"hello", 20.0)
            assert why(answers, "n2").startswith("lost: ")
        assert time.monotonic() - started_s < 2.0


def test_what_a_handler_raises_is_a_reason_without_its_words_unless_they_are_meant_for_us() -> None:
    with Conversation(through_plays({"n1": "good"})) as conversation:
        failed = why(ask(conversation, b"raise", 20.0), "n1")
        assert failed.startswith("unreadable: its pardbg failed: RuntimeError at node_program.py:")
        assert "hunter2" not in failed
        assert why(ask(conversation, b"refuse", 5.0), "n1") == "gone: no rank of that job is here"
        assert data_of(ask(conversation, b"print", 5.0)) == {"n1": b"n1:print"}


def test_an_answer_as_large_as_they_may_be_comes_whole() -> None:
    with Conversation(through_plays({"n1": "good"})) as conversation:
        (answer,) = data_of(ask(conversation, b"bytes 2000000", 30.0)).values()
        assert len(answer) == 2_000_000


def test_a_request_ends_the_one_before_it() -> None:
    with Conversation(through_plays({"n1": "good"})) as conversation:
        ask(conversation, b"hello", 20.0)
        first = conversation.ask(b"sleep 1", time.monotonic() + 10.0)
        second = conversation.ask(b"hello", time.monotonic() + 10.0)
        assert [answer.data for answer in second] == [b"n1:hello"]
        (overtaken,) = list(first)
        assert overtaken.absence is not None
        assert overtaken.absence.reason.value == "skipped"


def test_a_program_that_is_not_there_is_a_reason() -> None:
    way = Way(name="srun", launches=(Launch(nodes=("n1", "n2"), command=("/nowhere/srun",)),))
    with Conversation(way) as conversation:
        answers = ask(conversation, b"hello", 5.0)
    assert (
        why(answers, "n1")
        == why(answers, "n2")
        == "not-installed: /nowhere/srun cannot be started here: No such file or directory"
    )


def test_noise_on_standard_error_is_not_told_as_if_it_were_the_reason() -> None:
    (launch,) = through_srun("7", ["n1"]).launches
    said = "srun: cluster configuration lacks support for cpu binding"
    way = Way(name="srun", launches=(replace(launch, command=("sh", "-c", f"echo '{said}' >&2; echo 'a reason' >&2")),))
    with Conversation(way) as conversation:
        told = why(ask(conversation, b"hello", 5.0), "n1")
    assert told == "unreachable: srun exited with 0 before the node came up; standard error: a reason"


def test_more_nodes_than_may_start_are_told_apart_from_silent_ones() -> None:
    with Conversation(through_plays(dict.fromkeys(["n1", "n2", "n3"], "silent"), most_starting=2)) as conversation:
        answers = ask(conversation, b"hello", 1.0)
    assert "no word from it" in why(answers, "n1")
    assert "not reached" in why(answers, "n3")


def test_a_launch_that_silent_nodes_hold_up_is_started_anew_without_them() -> None:
    """As srun does while a node's daemon does not answer: greetings come, requests do not get through."""

    def launch(nodes: tuple[str, ...]) -> Launch:
        if "n3" in nodes:
            script = "".join(f'echo \'{{"pardbg":"collect/1","id":0,"node":"{node}"}}\';' for node in nodes if node != "n3")
            return Launch(nodes=nodes, command=("sh", "-c", f"{script} exec sleep 300"))
        return through_one(dict.fromkeys(nodes, "good")).launches[0]

    nodes = ("n1", "n2", "n3")
    with Conversation(Way(name="srun", launches=(launch(nodes),), regroup=launch)) as conversation:
        started_s = time.monotonic()
        answers = ask(conversation, b"hello", 20.0)
        assert time.monotonic() - started_s < 8.0
    assert data_of(answers) == {"n1": b"n1:hello", "n2": b"n2:hello"}
    assert why(answers, "n3").startswith("unreachable: srun could not start anything on it")


def test_a_slow_start_on_one_node_is_no_reason_to_start_anew() -> None:
    with Conversation(through_one({"n1": "good", "n2": "slow_start"})) as conversation:
        assert set(data_of(ask(conversation, b"hello", 20.0))) == {"n1", "n2"}


@pytest.mark.parametrize("behaviour", ["good", "silent", "deaf", "endless_lines"])
def test_closing_is_bounded_whatever_the_nodes_do(behaviour: str) -> None:
    conversation = Conversation(through_plays(dict.fromkeys(["n1", "n2", "n3", "n4"], behaviour)))
    with conversation:
        ask(conversation, b"hello", 1.5)
        if behaviour == "good":
            ask(conversation, b"hello", 10.0)
            conversation.ask(b"spin", time.monotonic() + 10.0)
        closing_s = time.monotonic()
    assert time.monotonic() - closing_s < 5.0


def test_a_conversation_that_asks_nothing_leaves_nothing() -> None:
    with Conversation(through_plays(dict.fromkeys(["n1", "n2"], "good"))):
        pass


ROOT = Path(__file__).parents[2]
SCRIPT = """
import sys, time
sys.path.insert(0, sys.argv[1])
from pardbg.watchdog.transport.conversation import Conversation
from tests.transport.playing import through_plays
with Conversation(through_plays({"n1": "good", "n2": "good", "n3": "silent"})) as conversation:
    for answer in conversation.ask(b"pid", time.monotonic() + 30.0):
        print(answer.data.decode(), flush=True)
"""


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_nothing_stays_after_ctrl_c_nor_after_a_kill(sent: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(ROOT)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as scanner:
        assert scanner.stdout is not None
        pids = [int(scanner.stdout.readline()) for _ in range(2)]
        silent = [pid for pid in children_of(scanner.pid) if pid not in pids]
        scanner.send_signal(sent)
        scanner.wait(timeout=6.0)
    wait_until_gone(pids + silent if sent == signal.SIGINT else pids)  # the silent one does not end with its input


def test_a_request_may_be_abandoned() -> None:
    before = set(threading.enumerate())
    with Conversation(through_plays({"n1": "good", "n2": "good"})) as conversation:
        for answer in conversation.ask(b"hello", time.monotonic() + 20.0):
            assert answer.data
            break
        assert set(data_of(ask(conversation, b"again", 10.0))) == {"n1", "n2"}
    assert set(threading.enumerate()) <= before


def test_a_play_is_what_through_local_starts() -> None:
    assert through_local(["n1"], play("good")).launches[0].command[-2:] == ("--node", "n1")


def children_of(pid: int) -> list[int]:
    return [int(child) for path in Path(f"/proc/{pid}/task").glob("*/children") for child in path.read_text().split()]


def wait_until_gone(pids: list[int]) -> None:
    until_s = time.monotonic() + 5.0
    while left := [pid for pid in pids if Path(f"/proc/{pid}").exists()]:
        assert time.monotonic() < until_s, left
        time.sleep(0.05)
