"""Names of jobs: those that people give, and those that are made."""

from datetime import datetime

import pytest

from pardbg.collectors.jobs.environment import read_environment
from pardbg.collectors.jobs.job_ids import JobName, read_job_name
from pardbg.watchdog.errors import InputError
from pardbg.watchdog.model.names import JobSource
from pardbg.watchdog.model.world import World
from pardbg.watchdog.run.job_name import check_name, propose_name

NOON = datetime(2026, 11, 29, 23, 30)  # noqa: DTZ001 - local time, as people read it


@pytest.mark.parametrize(
    "name",
    [
        "",
        "  ",
        "a\nb",
        "a\x1b[31m",
        "x" * 201,
        "slurm:12",
        "k8s:a/b",
        "torchrun:x",
        "run:x",
        "none",
        "--",
        " a",
        "a ",
        "\udcff",
    ],
)
def test_a_name_that_a_scan_would_not_find_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=r"^--job") as refused:
        check_name(name, "--job")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["a", "x" * 200, "train 7b", "größe", "12", "12_3", "a/b", "mine:1", "it's"])
def test_any_other_name_reaches_a_scan_as_it_is(name: str) -> None:
    assert check_name(name, "--job") == name
    assert read_environment(b"PARDBG_JOB=" + name.encode())["PARDBG_JOB"] == name
    world = World(world_size=1, ranks=(), job_ids=((JobSource.RUN, name),))
    assert read_job_name(name, [world]) == JobName(source=JobSource.RUN, name=name)


@pytest.mark.parametrize(
    ("command", "program"),
    [
        ("torchrun --nproc-per-node 8 /home/me/train.py --data x.py", "train"),
        ("srun -n 8 python -u pre-train.py", "pre-train"),
        ("bash run_7b.sh", "run_7b"),
        ("python -m megatron.training.main --lr 1", "main"),
        ("torchrun --module mine.train", "train"),
        ("/opt/bin/trainer --fast", "trainer"),
        ("./größe", "gr-e"),
        ("...", "job"),
        (f"{'x' * 300}.py", "x" * 40),
        ("", "job"),
    ],
)
def test_a_new_name_says_what_is_trained_and_when(command: str, program: str) -> None:
    name = propose_name(command.split(), NOON, "3fa2")
    assert name == f"{program}-1129-2330-3fa2"
    assert check_name(name, "new") == name
