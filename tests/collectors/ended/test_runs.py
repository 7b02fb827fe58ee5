"""Which ranks that have ended were a world together, and which of them the user means."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pardbg.collectors.ended.look import find_ended_runs
from pardbg.collectors.ended.runs import Run
from pardbg.collectors.ended.selection import ChosenRun, command_for, select_run
from pardbg.collectors.jobs.query import JobQuery
from pardbg.collectors.live.identity import read_living
from pardbg.collectors.probe.places import RANK_FILE
from pardbg.watchdog.errors import AmbiguousJobError
from pardbg.watchdog.model.names import JobSource
from tests.collectors.ended.folders import NO_PROCESS, Left

NOW_NS = 10**19


@pytest.fixture
def root(tmp_path: Path) -> Path:
    tmp_path.chmod(0o700)
    return tmp_path


def runs_in(root: Path) -> list[Run]:
    """Those of this root alone; the machine may have others."""
    return [
        run for run in find_ended_runs({"PARDBG_DIR": str(root)}) if Path(os.fsdecode(run.ranks[0].folder.path)).parent == root
    ]


def ranks(run: Run) -> list[int]:
    return [rank.rank for rank in run.ranks]


def chosen(root: Path, job: str | None, **changes: object) -> ChosenRun:
    found = select_run(runs_in(root), JobQuery(job=job, **changes), NOW_NS)  # type: ignore[arg-type]  # fields of JobQuery
    assert found is not None
    return found


def test_ranks_of_one_launch_are_one_run(root: Path) -> None:
    left = Left(root)
    left.add(0)
    left.add(1)
    (run,) = runs_in(root)

    assert ranks(run) == [0, 1]
    assert (run.key.store, run.key.world_size, run.key.attempt) == ("127.0.0.1:29500", 2, 0)
    assert [rank.heartbeat.step for rank in run.ranks if rank.heartbeat] == [41, 41]
    assert run.job_ids == ((JobSource.TORCHRUN, "job"),)


def test_process_that_lives_has_not_ended(root: Path) -> None:
    left = Left(root)
    left.add(0)
    stat = read_living(os.getpid())
    assert stat is not None
    folder = left.add(1, pid=os.getpid(), started_ticks=stat.started_ticks)
    folder.rename(root / f"{os.getpid()}-{stat.started_ticks}")

    assert [ranks(run) for run in runs_in(root)] == [[0]]


def test_process_with_the_number_of_one_that_has_ended_is_another_one(root: Path) -> None:
    Left(root).add(1, pid=os.getpid())

    assert [ranks(run) for run in runs_in(root)] == [[1]]


def test_zombie_has_ended_and_tells_its_exit_code(root: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "import os; os._exit(7)"]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        text = Path(f"/proc/{child.pid}/stat").read_text()
        ticks = int(text.rpartition(")")[2].split()[19])
        folder = Left(root).add(0, pid=child.pid, started_ticks=ticks)
        folder.rename(root / f"{child.pid}-{ticks}")
        (run,) = runs_in(root)

    assert run.ranks[0].folder.exit_code == 7


def test_folder_of_another_boot_is_left_out(root: Path) -> None:
    left = Left(root)
    left.add(0)
    left.add(1, boot_id="0b5d1a31-0000-0000-0000-000000000000")

    assert [ranks(run) for run in runs_in(root)] == [[0]]


def test_newest_attempt_counts_and_the_older_ones_are_counted(root: Path) -> None:
    for attempt, (start, end) in enumerate([(300, 250), (200, 150), (100, 50)]):
        left = Left(root, start, end, attempt=attempt, first_pid=NO_PROCESS + 10 * attempt)
        left.add(0)
        left.add(1)
    found = chosen(root, "job")

    assert (found.run.key.attempt, found.count, found.source, found.job_id) == (2, 3, JobSource.TORCHRUN, "job")


def test_restarts_in_vain_are_passed_over(root: Path) -> None:
    for attempt, (start, end, is_member) in enumerate([(300, 250, True), (200, 150, False), (100, 50, False)]):
        left = Left(root, start, end, attempt=attempt, first_pid=NO_PROCESS + 10 * attempt)
        left.add(0, is_member=is_member)
        left.add(1, is_member=is_member)
    found = chosen(root, "job")

    assert (found.run.key.attempt, found.count, found.later_count) == (0, 1, 2)


def test_new_job_that_ended_before_its_ranks_met_is_not_passed_over(root: Path) -> None:
    for start, end, is_member in [(300, 250, True), (100, 50, False)]:
        left = Left(root, start, end, first_pid=NO_PROCESS + start)
        left.add(0, is_member=is_member)
    found = chosen(root, "job")

    assert (found.later_count, found.count) == (0, 2)


def test_runs_of_plain_launchers_on_one_port_are_told_apart_by_time(root: Path) -> None:
    Left(root, 300, 250).add(0)  # its rank 1 has left nothing
    later = Left(root, 100, 50, first_pid=NO_PROCESS + 10)
    later.add(1)
    later.add(0)

    assert [ranks(run) for run in runs_in(root)] == [[0], [0, 1]]


def test_prefixes_and_names_of_run_mean_what_they_mean_for_living_jobs(root: Path) -> None:
    Left(root, environment={"PARDBG_JOB": "demo-1", "SLURM_JOB_ID": "77"}).add(0)

    for job, source, name in (
        ("demo-1", JobSource.RUN, "demo-1"),
        ("run:demo-1", JobSource.RUN, "demo-1"),
        ("77", JobSource.SLURM, "77"),
        ("torchrun:job", JobSource.TORCHRUN, "job"),
    ):
        assert (chosen(root, job).source, chosen(root, job).job_id) == (source, name)
    assert select_run(runs_in(root), JobQuery(job="other"), NOW_NS) is None


def test_two_worlds_of_one_name_at_one_time_are_a_choice(root: Path) -> None:
    Left(root, environment={"PARDBG_JOB": "mine"}).add(0)
    Left(root, environment={"MASTER_PORT": "29501"}, first_pid=NO_PROCESS + 10).add(0)

    with pytest.raises(AmbiguousJobError, match="2 worlds, which have ended") as raised:
        chosen(root, "job")
    assert {choice.partition("  #")[0].strip() for choice in raised.value.choices} == {
        "pardbg scan --job mine",
        f"pardbg scan --pid {NO_PROCESS + 10}",
    }
    assert chosen(root, None, pids=(NO_PROCESS + 10,)).run.key.port == "29501"


def test_world_of_another_size_is_not_meant(root: Path) -> None:
    Left(root).add(0)

    assert select_run(runs_in(root), JobQuery(job="job", world_size=8), NOW_NS) is None


def test_command_names_the_newest_run_of_a_name(root: Path) -> None:
    Left(root, 300, 250).add(0)
    Left(root, 100, 50, attempt=1, first_pid=NO_PROCESS + 10).add(0)
    older, newer = runs_in(root)

    assert command_for(newer, [older, newer]) == "pardbg scan --job job"
    assert command_for(older, [older, newer]) == f"pardbg scan --pid {NO_PROCESS}"


def test_child_of_a_rank_that_inherits_its_number_is_no_member(root: Path) -> None:
    left = Left(root)
    left.add(0)
    left.add(0, pid=NO_PROCESS + 50, is_member=False)
    left.add(1, pid=NO_PROCESS + 51, is_member=False)
    left.add(1, pid=NO_PROCESS + 52, is_member=False)
    (run,) = runs_in(root)

    assert [(rank.rank, rank.folder.pid) for rank in run.ranks] == [(0, NO_PROCESS), (1, NO_PROCESS + 52)]


def test_job_that_ended_before_anybody_joined_is_a_run(root: Path) -> None:
    left = Left(root)
    left.add(0, is_member=False)
    left.add(1, is_member=False)

    assert [ranks(run) for run in runs_in(root)] == [[0, 1]]


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b'{"schema": "pardbg.rank/1", "pid": "x"}', b"\xff" * 100, b"[" * 100_000, b"x" * 2**20],
    ids=["empty", "cut", "not_a_number", "binary", "deep", "large"],  # pytest tells children the id
)
def test_hostile_rank_file_is_no_rank(root: Path, content: bytes) -> None:
    left = Left(root)
    left.add(0)
    (left.add(1) / RANK_FILE).write_bytes(content)

    assert [ranks(run) for run in runs_in(root)] == [[0]]


def test_traps_are_not_opened(root: Path) -> None:
    """A FIFO would wait for ever, a link leads elsewhere, and others may write into an open folder."""
    left = Left(root)
    left.add(0)
    fifo, link, opened = left.add(1), left.add(2), left.add(3)
    (fifo / RANK_FILE).unlink()
    os.mkfifo(fifo / RANK_FILE)
    (link / RANK_FILE).rename(root / "elsewhere")
    (link / RANK_FILE).symlink_to(root / "elsewhere")
    opened.chmod(0o777)
    (root / f"{NO_PROCESS + 4}-5").symlink_to(root / f"{NO_PROCESS}-5")
    (root / f"{NO_PROCESS + 5}-5").write_text("no folder")

    assert [ranks(run) for run in runs_in(root)] == [[0]]


def test_root_that_anybody_may_write_to_is_not_believed(root: Path) -> None:
    Left(root).add(0)
    root.chmod(0o777)

    assert runs_in(root) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a file to another user")
def test_folders_of_two_users_are_two_runs(root: Path) -> None:
    left = Left(root)
    left.add(0)
    foreign = left.add(1)
    for path in (foreign, *foreign.iterdir()):
        os.chown(path, 65534, 65534)

    assert sorted(ranks(run) for run in runs_in(root)) == [[0], [1]]
