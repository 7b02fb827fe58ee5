"""A kubectl that is missing, never ends, writes without end, or leaves a plugin behind."""

import time
from pathlib import Path

import pytest
from tests.own_children import are_soon_gone, living_children

from pardbg.collectors.jobs.kubernetes import asking
from pardbg.collectors.jobs.kubernetes.asking import ask
from pardbg.collectors.jobs.kubernetes.find import find_kubernetes_job
from pardbg.collectors.jobs.own_command import Answer
from pardbg.watchdog.model.evidence import Absence
from pardbg.watchdog.model.names import AbsenceReason


def plant(folder: Path, script: str) -> dict[str, str]:
    """An environment in which kubectl is this script."""
    path = folder / "kubectl"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin", "KUBECONFIG": "/here"}


def reason_of(answer: Answer | Absence) -> AbsenceReason:
    assert isinstance(answer, Absence), answer
    return answer.reason


def soon(seconds: float = 5.0) -> float:
    return time.monotonic() + seconds


def test_users_environment_is_passed_on_in_plain_english(tmp_path: Path) -> None:
    answer = ask(("version",), soon(), plant(tmp_path, 'echo "$KUBECONFIG $LC_ALL $*"'))
    assert isinstance(answer, Answer)
    assert answer.output.decode().startswith("/here C version --request-timeout=")
    assert answer.command == "kubectl version"


def test_missing_kubectl_is_a_reason(tmp_path: Path) -> None:
    assert reason_of(ask(("version",), soon(), {"PATH": str(tmp_path)})) is AbsenceReason.NOT_INSTALLED


def test_program_that_cannot_be_started_is_a_reason(tmp_path: Path) -> None:
    environment = plant(tmp_path, "")
    (tmp_path / "kubectl").write_bytes(b"\x7fELF nonsense")
    assert reason_of(ask(("version",), soon(), environment)) is AbsenceReason.UNREADABLE


@pytest.mark.parametrize(
    "script",
    ["sleep 60", "exec >&- 2>&-; sleep 60", "while :; do echo y; done | head -c 1000; sleep 60", "trap '' TERM; sleep 60"],
)
def test_kubectl_that_does_not_end_is_given_up_in_time(tmp_path: Path, script: str) -> None:
    before, began_s = living_children(), time.monotonic()
    assert reason_of(ask(("version",), soon(0.5), plant(tmp_path, script))) is AbsenceReason.TIMED_OUT
    assert time.monotonic() - began_s < 2.0
    assert are_soon_gone(before)


def test_plugin_is_ended_with_kubectl(tmp_path: Path) -> None:
    script = f"sleep 600 & echo $! > {tmp_path}/plugin; wait"
    assert reason_of(ask(("version",), soon(0.5), plant(tmp_path, script))) is AbsenceReason.TIMED_OUT
    plugin = Path("/proc") / (tmp_path / "plugin").read_text().strip()
    until_s = soon(2.0)
    while plugin.exists() and "Z" not in (plugin / "stat").read_text().split()[2]:
        assert time.monotonic() < until_s
        time.sleep(0.02)


def test_endless_output_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "MOST_OUTPUT_BYTES", 2**20)
    assert reason_of(ask(("get",), soon(), plant(tmp_path, "yes"))) is AbsenceReason.UNREADABLE


def test_what_the_client_logs_is_no_reason(tmp_path: Path) -> None:
    script = 'echo "E1130 03:55:20.69 x.go:1] refused" >&2; echo "error: context was not found" >&2; exit 1'
    answer = ask(("get",), soon(), plant(tmp_path, script))
    assert isinstance(answer, Absence)
    assert (answer.reason, answer.detail) == (AbsenceReason.SWITCHED_OFF, "kubectl get: error: context was not found")


def test_no_question_is_put_when_time_is_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", plant(tmp_path, f"touch {tmp_path}/asked")["PATH"])
    answer = find_kubernetes_job("train/exp7", time.monotonic() - 1)
    assert isinstance(answer, Absence)
    assert answer.reason is AbsenceReason.SKIPPED
    assert not (tmp_path / "asked").exists()
