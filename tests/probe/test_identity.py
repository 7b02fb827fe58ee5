"""What is kept of the environment is what the collectors keep, and nothing else."""

import os

import pytest

from pardbg.collectors.jobs.environment import KEPT_NAMES, RECORDER_NAMES
from pardbg.collectors.probe import identity


def test_the_list_of_names_is_the_collectors() -> None:
    assert set(identity.IDENTITY_NAMES) == (KEPT_NAMES - RECORDER_NAMES) | {"PARDBG_JOB"}
    assert list(identity.IDENTITY_NAMES) == sorted(identity.IDENTITY_NAMES)


def test_nothing_else_of_the_environment_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.1.2.3")
    monkeypatch.setenv("API_TOKEN", "a-secret")
    monkeypatch.setenv("POD_NAME", "p" * 10_000)
    said = identity.describe()
    environment = said["environment"]
    assert isinstance(environment, dict)
    assert environment["KUBERNETES_SERVICE_HOST"] == "set"
    assert len(environment["POD_NAME"]) == 4096
    assert "a-secret" not in repr(said)
    assert "10.1.2.3" not in repr(said)
    assert (said["rank"], said["pid"]) == (3, os.getpid())


@pytest.mark.parametrize(("text", "rank"), [("0", 0), ("12", 12), ("", None), ("-1", None), ("1e3", None), ("9" * 10, None)])
def test_a_rank_is_a_plain_number(monkeypatch: pytest.MonkeyPatch, text: str, rank: int | None) -> None:
    monkeypatch.setenv("RANK", text)
    assert identity.read_rank() == rank


def test_a_cgroup_that_does_not_say_is_no_error() -> None:
    assert identity.count_oom_kills("/no/such/folder") is None
    assert identity.count_oom_kills(None) is None
