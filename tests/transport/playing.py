"""Conversations with nodes that are `node_program.py` on this machine."""

import os
import sys
import time
from collections.abc import Collection, Mapping
from pathlib import Path

from pardbg.watchdog.transport.answer import Answer
from pardbg.watchdog.transport.conversation import Conversation
from pardbg.watchdog.transport.local import through_local
from pardbg.watchdog.transport.way import Launch, Way

PROGRAM = Path(__file__).parent / "node_program.py"


def play(behaviour: str) -> tuple[str, ...]:
    """The command of a node."""
    return (sys.executable, str(PROGRAM), behaviour)


def through_plays(behaviours: Mapping[str, str], most_starting: int = 8) -> Way:
    """A child for each node, each with its behaviour."""
    launches = [through_local([node], play(behaviour)).launches[0] for node, behaviour in behaviours.items()]
    return Way(name="local", launches=tuple(launches), most_starting=most_starting)


def through_one(behaviours: Mapping[str, str]) -> Way:
    """One process through which all nodes speak, as with srun: a shell that starts them and hands its input to each."""
    starts = " ".join(f">({' '.join(play(behaviour))} --node {node} >&3)" for node, behaviour in behaviours.items())
    command = ("bash", "-c", f"exec 3>&1; exec tee {starts} > /dev/null")
    return Way(name="srun", launches=(Launch(nodes=tuple(behaviours), command=command),))


def ask(conversation: Conversation, data: bytes, within_s: float, nodes: Collection[str] | None = None) -> dict[str, Answer]:
    """All answers by node; no node may answer twice."""
    answers: dict[str, Answer] = {}
    for answer in conversation.ask(data, time.monotonic() + within_s, nodes):
        assert answer.node not in answers
        assert (answer.data is None) != (answer.absence is None)
        answers[answer.node] = answer
    return answers


def data_of(answers: Mapping[str, Answer]) -> dict[str, bytes]:
    """What those have said that had something to say."""
    return {node: answer.data for node, answer in answers.items() if answer.data is not None}


def why(answers: Mapping[str, Answer], node: str) -> str:
    """``reason: detail`` of a node without an answer."""
    absence = answers[node].absence
    assert absence is not None, f"{node} has answered {answers[node].data!r}"
    return f"{absence.reason.value}: {absence.detail}"


def open_descriptors() -> set[str]:
    """Ours."""
    return set(os.listdir("/proc/self/fd"))  # noqa: PTH208 - the listing's own descriptor is the same each time
