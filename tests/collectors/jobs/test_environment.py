"""Of an environment only the closed list of names is kept."""

import pytest

from pardbg.collectors.jobs.environment import KEPT_NAMES, read_environment, read_number, recorder_settings


def test_only_names_of_the_closed_list_are_kept() -> None:
    data = b"RANK=3\0AWS_SECRET_ACCESS_KEY=abc\0RANK_TOKEN=x\0LOGNAME=mia\0WORLD_SIZE=8\0"
    assert read_environment(data) == {"RANK": "3", "WORLD_SIZE": "8"}


def test_no_kept_name_is_one_that_holds_secrets() -> None:
    assert [name for name in KEPT_NAMES if any(word in name for word in ("TOKEN", "SECRET", "KEY", "PASS"))] == []


def test_first_of_two_values_counts_as_for_the_process_itself() -> None:
    assert read_environment(b"RANK=1\0RANK=2\0") == {"RANK": "1"}


@pytest.mark.parametrize("value", [b"\x1b[31mred", b"\xff\xfe", b"a\nb"])
def test_value_that_is_not_printable_is_dropped(value: bytes) -> None:
    assert read_environment(b"PARDBG_JOB=" + value + b"\0RANK=0\0") == {"RANK": "0"}


def test_long_value_is_cut() -> None:
    assert len(read_environment(b"PARDBG_JOB=" + b"x" * 10_000)["PARDBG_JOB"]) == 4096


def test_of_names_that_matter_by_their_presence_no_value_is_kept() -> None:
    assert read_environment(b"NCCL_TIMEOUT=hunter2\0KUBERNETES_SERVICE_HOST=10.0.0.1\0") == {
        "NCCL_TIMEOUT": "set",
        "KUBERNETES_SERVICE_HOST": "set",
    }


@pytest.mark.parametrize("data", [b"", b"\0\0", b"RANK", b"=3\0", b"python train.py: epoch 3"])
def test_environment_without_assignments_is_empty(data: bytes) -> None:
    assert read_environment(data) == {}


def test_recorder_settings_are_those_of_the_recorder_and_of_attaching() -> None:
    kept = {"RANK": "0", "TORCH_FR_BUFFER_SIZE": "0", "PARDBG_ATTACH": "never"}
    assert recorder_settings(kept) == {"TORCH_FR_BUFFER_SIZE": "0", "PARDBG_ATTACH": "never"}


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("12", 12), ("", None), (None, None), ("-1", None), ("\u00b2", None), ("1" * 10, None), ("1.5", None)],
)
def test_number_is_a_plain_one(text: str | None, number: int | None) -> None:
    assert read_number(text) == number
