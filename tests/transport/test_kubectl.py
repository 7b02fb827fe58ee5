"""Pods through a kubectl that behaves as the real one does where it matters here."""

import json
import sys
from pathlib import Path

import pytest
from tests.own_children import are_soon_gone, living_children
from tests.transport.playing import ask, data_of, play, why

from pardbg.watchdog.transport.conversation import Conversation
from pardbg.watchdog.transport.kubectl import Pod, through_kubectl

KUBECTL = (sys.executable, str(Path(__file__).parent / "kubectl_program.py"))
WRONG = {
    "w-0": "",
    "w-1": "",
    "w-2": 'error: unable to upgrade connection: container not found ("main")',
    "w-3": 'Error from server (Forbidden): pods "w-3" is forbidden: User "me" cannot create resource "pods/exec"',
    "w-4": 'OCI runtime exec failed: exec failed: exec: "pardbg": executable file not found in $PATH: unknown',
    "w-5": "Error from server: error dialing backend: dial tcp 10.0.0.5:10250: i/o timeout",
    "w-6": "cannot exec into a container in a completed pod; current phase is Succeeded",
}


def test_pods_answer_and_each_that_does_not_has_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_PODS", json.dumps(WRONG))
    before = living_children()
    pods = [Pod(name=name, namespace="train", container="main") for name in (*WRONG, "w-9")]
    with Conversation(through_kubectl(pods, play("good"), KUBECTL)) as conversation:
        answers = ask(conversation, b"hello", 20.0)
        assert data_of(ask(conversation, b"again", 20.0)) == {"w-0": b"w-0:again", "w-1": b"w-1:again"}
    assert data_of(answers) == {"w-0": b"w-0:hello", "w-1": b"w-1:hello"}
    reasons = {name: why(answers, name).partition(":")[0] for name in answers if answers[name].absence}
    assert reasons == {
        "w-2": "gone",
        "w-3": "denied",
        "w-4": "not-installed",
        "w-5": "unreachable",
        "w-6": "gone",
        "w-9": "gone",
    }
    assert are_soon_gone(before)
