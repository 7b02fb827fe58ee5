"""What is removed when a job starts, and what never is."""

import fcntl
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pardbg.collectors.probe import places
from pardbg.collectors.procfs.stat import parse_stat
from pardbg.watchdog.run import pruning
from pardbg.watchdog.run.pruning import Roots, prune

UID = os.getuid()
NOW_S = time.time()
DAY_S = 86400.0
NOBODY = f"{2**22 + 7}-123"  # no process has a number beyond the kernel's greatest
HERE = Path("/proc/sys/kernel/random/boot_id").read_text().strip()


@pytest.fixture
def roots(tmp_path: Path) -> Roots:
    for name in ("memory", "disk"):
        (tmp_path / name).mkdir(0o700)
    return Roots(memory=str(tmp_path / "memory"), disk=str(tmp_path / "disk"), uid=UID)


def age(folder: Path, days: float) -> None:
    """Makes all in it, and itself, that old."""
    moment = NOW_S - days * DAY_S
    for path in (*folder.rglob("*"), folder):
        os.utime(path, (moment, moment), follow_symlinks=False)


def rank_folder(roots: Roots, name: str = NOBODY, days: float = 8, **said: str) -> Path:
    folder = Path(roots.memory) / name
    folder.mkdir()
    for file in (places.PAGE_FILE, places.GROUPS_FILE, places.ENDED_STACKS, places.FATAL_STACKS, places.ASKED_STACKS):
        (folder / file).write_text("x")
    (folder / places.RANK_FILE).write_text(json.dumps({"host": os.uname().nodename, "boot_id": HERE, **said}))
    os.mkfifo(folder / "7.pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / places.SERVER_SOCKET))
    age(folder, days)
    return folder


def job_folder(roots: Roots, name: str = "job-a", days: float = 31) -> Path:
    folder = Path(roots.disk) / name
    (folder / "attempt0").mkdir(parents=True)
    for file in ("dump_rank_0", "attempt0/dump_rank_0", "attempt0/dump_rank_17", "attempt0/last-4711_rank_3"):
        (folder / file).write_text("x")
    age(folder, days)
    return folder


def own_name() -> str:
    return f"{os.getpid()}-{parse_stat(Path('/proc/self/stat').read_text()).started_ticks}"


def test_a_rank_that_ended_a_week_ago_goes(roots: Roots) -> None:
    old, young = rank_folder(roots), rank_folder(roots, f"{2**22 + 8}-1", days=6.9)
    assert prune(roots, NOW_S) == 1
    assert (old.exists(), young.exists()) == (False, True)


def test_one_young_file_keeps_a_folder(roots: Roots) -> None:
    folder = rank_folder(roots)
    os.utime(folder / places.PAGE_FILE, (NOW_S, NOW_S))
    assert prune(roots, NOW_S) == 0


def test_a_living_process_keeps_its_folder_whatever_its_age(roots: Roots) -> None:
    folder = rank_folder(roots, own_name(), days=100)
    assert prune(roots, NOW_S) == 0
    assert folder.exists()


def test_another_process_with_the_number_keeps_nothing(roots: Roots) -> None:
    rank_folder(roots, f"{os.getpid()}-1")
    assert prune(roots, NOW_S) == 1


@pytest.fixture
def locked(roots: Roots) -> Iterator[Path]:
    """The page of a rank in another container: its number is none here, but it holds its lock."""
    folder = rank_folder(roots)
    with (folder / places.PAGE_FILE).open("rb") as page:
        fcntl.flock(page, fcntl.LOCK_SH)
        yield folder


def test_a_locked_page_keeps_its_folder(roots: Roots, locked: Path) -> None:
    assert prune(roots, NOW_S) == 0
    assert (locked / places.PAGE_FILE).exists()


def test_a_rank_of_another_machine_is_not_ours_to_judge(roots: Roots) -> None:
    rank_folder(roots, boot_id="another", host="another")
    assert prune(roots, NOW_S) == 0


def test_a_rank_from_before_the_machine_started_anew_is_gone(roots: Roots) -> None:
    rank_folder(roots, own_name(), boot_id="earlier")
    assert prune(roots, NOW_S) == 1


@pytest.mark.parametrize("garbage", [b"", b"{", b"[]", b'{"host": 7}', b"\xff", b"[" * 100_000])
def test_what_a_rank_said_may_be_garbage(roots: Roots, garbage: bytes) -> None:
    folder = rank_folder(roots)
    (folder / places.RANK_FILE).write_bytes(garbage)
    age(folder, 8)
    assert prune(roots, NOW_S) == 1


def test_a_job_of_a_month_ago_goes(roots: Roots) -> None:
    old, young = job_folder(roots), job_folder(roots, "job-b", days=29)
    assert prune(roots, NOW_S) == 1
    assert (old.exists(), (young / "attempt0/dump_rank_17").exists()) == (False, True)


def test_the_job_that_starts_now_keeps_its_folder(roots: Roots) -> None:
    folder = job_folder(roots)
    kept = Roots(memory=roots.memory, disk=roots.disk, uid=UID, kept_job=str(folder))
    assert prune(kept, NOW_S) == 0


@pytest.mark.parametrize("inside", ["dump_rank_", "attempt0/dump_rank_"])
def test_a_job_whose_rank_lives_keeps_its_folder(roots: Roots, inside: str) -> None:
    folder = job_folder(roots)
    rank_folder(roots, own_name(), days=100, dumps=str(folder / inside))
    assert prune(roots, NOW_S) == 0
    assert (folder / "attempt0/dump_rank_17").exists()


def plant_file(folder: Path) -> None:
    (folder / "model.pt").write_text("a week of work")


def plant_folder(folder: Path) -> None:
    (folder / "data").mkdir()


def plant_folder_with_a_known_name(folder: Path) -> None:
    (folder / "attempt0" / "dump_rank_5").mkdir(parents=True)


def plant_linked_attempt(folder: Path) -> None:
    (folder.parent.parent / "elsewhere").mkdir()
    (folder.parent.parent / "elsewhere" / "dump_rank_1").touch()
    (folder / "attempt1").symlink_to(folder.parent.parent / "elsewhere")


@pytest.mark.parametrize("plant", [plant_file, plant_folder, plant_folder_with_a_known_name, plant_linked_attempt])
@pytest.mark.parametrize("make", [rank_folder, job_folder])
def test_a_folder_with_anything_else_in_it_stays_whole(
    roots: Roots, make: Callable[[Roots], Path], plant: Callable[[Path], None]
) -> None:
    folder = make(roots)
    plant(folder)
    age(folder, 400)
    before = sorted(folder.parent.parent.rglob("*"))
    assert prune(roots, NOW_S) == 0
    assert sorted(folder.parent.parent.rglob("*")) == before


@pytest.mark.parametrize("name", ["12", "a-1", "1-2-3", "0-1", "-1-2", "1-2 ", "job-", "attempt0", "mine"])
def test_folders_with_other_names_stay(roots: Roots, name: str) -> None:
    for root in (roots.memory, roots.disk):
        (Path(root) / name).mkdir()
        age(Path(root) / name, 400)
    assert prune(roots, NOW_S) == 0
    assert all((Path(root) / name).exists() for root in (roots.memory, roots.disk))


def test_a_link_is_not_followed_where_a_folder_should_be(roots: Roots, tmp_path: Path) -> None:
    target = rank_folder(roots)
    target = target.rename(tmp_path / "target")
    (Path(roots.memory) / NOBODY).symlink_to(target)
    assert prune(roots, NOW_S) == 0
    assert (target / places.PAGE_FILE).exists()


def test_a_link_in_a_folder_goes_and_its_target_stays(roots: Roots, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("x")
    folder = rank_folder(roots)
    for name in (places.PAGE_FILE, places.RANK_FILE):
        (folder / name).unlink()
        (folder / name).symlink_to(tmp_path / "precious")
    age(folder, 8)
    assert prune(roots, NOW_S) == 1
    assert (tmp_path / "precious").exists()


def test_a_root_that_is_a_link_is_left_alone(roots: Roots, tmp_path: Path) -> None:
    rank_folder(roots)
    (tmp_path / "link").symlink_to(roots.memory)
    assert prune(Roots(memory=str(tmp_path / "link"), disk=roots.disk, uid=UID), NOW_S) == 0


@pytest.mark.skipif(UID != 0, reason="only root can give files away")
def test_what_belongs_to_another_user_stays(roots: Roots) -> None:
    folder = rank_folder(roots)
    os.chown(folder, 65534, 65534)
    assert prune(roots, NOW_S) == 0


def test_roots_that_are_not_there_are_no_error(tmp_path: Path) -> None:
    assert prune(Roots(memory=str(tmp_path / "a"), disk=str(tmp_path / "b"), uid=UID), NOW_S) == 0


def test_one_start_removes_only_so_many(roots: Roots, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "MOST_FOLDERS", 3)
    for number in range(5):
        rank_folder(roots, f"{2**22 + number}-1")
    job = job_folder(roots)
    assert prune(roots, NOW_S) == 3
    assert job.exists()
    assert prune(roots, NOW_S) == 3


def test_without_time_nothing_is_removed(roots: Roots, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "DEADLINE_S", -1.0)
    rank_folder(roots)
    job_folder(roots)
    assert prune(roots, NOW_S) == 0
