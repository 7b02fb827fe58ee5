"""What happens to incidents when the disk is of no use."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pardbg.watchdog.incidents.keeper import Keeper
from pardbg.watchdog.incidents.letters import Event
from pardbg.watchdog.incidents.store import FILE_NAME, IncidentStore
from pardbg.watchdog.incidents.trouble import StoreFullError
from tests.incidents.making import ended, incident
from tests.incidents.test_store import letter


def stored(folder: Path) -> list[str]:
    store = IncidentStore.for_reading(folder)
    try:
        return [f"{int(one.id[9:15])} {one.state.value}" for one in store.all()]
    finally:
        store.close()


def disk_of(keeper: Keeper) -> IncidentStore:
    assert keeper._disk is not None
    return keeper._disk


def test_what_a_full_disk_does_not_take_is_told_and_written_when_there_is_room(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path)
    early = letter(number=1)
    keeper.save(incident(1), [early])
    disk_of(keeper).database.limit(4096)
    late = [letter(number=number) for number in range(2, 9)]
    for number, one in zip(range(2, 9), late, strict=True):
        keeper.save(incident(number), [one])
    end = letter(Event.ENDED, number=1)
    keeper.save(ended(incident(1)), [end])

    assert "is full" in keeper.problem
    assert "make room" in keeper.problem
    assert stored(tmp_path)[0] == "1 open"
    assert [int(one.id[9:15]) for one in keeper.open_ones()] == [2, 3, 4, 5, 6, 7, 8]
    assert [head.key for head in keeper.heads("r")] == [early.key, *(one.key for one in late)]
    keeper.remove(early.key)  # a receiver has taken it, and the disk does not take that either
    assert {head.key for head in keeper.heads("r")} == {end.key, *(one.key for one in late)}
    assert keeper.body_of(end.key) == "{}"
    assert keeper.unsent == 8
    assert [int(one.id[9:15]) for one in keeper.earlier(["gpu-n05"], [], "2027")] == [8, 7, 6, 5, 4, 3, 2, 1]

    disk_of(keeper).database.limit(1 << 30)
    keeper.settle()
    assert keeper.problem == ""
    assert stored(tmp_path) == ["1 ended", *(f"{number} open" for number in range(2, 9))]
    assert {head.key for head in keeper.heads("r")} == {end.key, *(one.key for one in late)}
    keeper.close()
    again = Keeper(tmp_path)
    assert again.unsent == 8
    again.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    if os.geteuid() != 0 or not mount("-t", "tmpfs", "-o", "size=400k,mode=700", "none", str(place)):
        pytest.skip("only root may mount a small disk")
    yield place
    subprocess.run(["/bin/umount", "-l", place], check=True)


def mount(*arguments: str) -> bool:
    return subprocess.run(["/bin/mount", *arguments], check=False).returncode == 0


def test_real_full_disk_and_then_a_disk_that_may_not_be_written(small_disk: Path) -> None:
    (small_disk / "filler").write_bytes(bytes(200 << 10))
    keeper = Keeper(small_disk)
    for number in range(1, 30):
        keeper.save(incident(number))
    assert "is full" in keeper.problem
    (small_disk / "filler").unlink()
    assert mount("-o", "remount,size=9m", str(small_disk))
    keeper.settle()
    assert keeper.problem == ""
    assert len(stored(small_disk)) == 29
    keeper.close()

    assert mount("-o", "remount,ro", str(small_disk))
    assert len(stored(small_disk)) == 29
    keeper = Keeper(small_disk)
    keeper.save(incident(30))
    assert keeper.problem
    assert len(keeper.open_ones()) == 30
    assert mount("-o", "remount,rw", str(small_disk))
    keeper.settle()
    assert (keeper.problem, len(stored(small_disk))) == ("", 30)
    keeper.close()


def test_what_not_even_memory_takes_is_an_error(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path)
    for store in (disk_of(keeper), keeper._pending):
        store.database.limit(4096)
    with pytest.raises(StoreFullError, match=r"memory: .* is full"):
        keeper.save(incident(1))
    disk_of(keeper).database.limit(1 << 30)
    keeper.save(incident(2))
    assert (keeper.problem, stored(tmp_path)) == ("", ["2 open"])
    keeper.close()


def test_folder_that_cannot_be_made_is_a_problem_and_not_the_end(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    keeper = Keeper(tmp_path / "file" / "state")
    keeper.save(incident(1), [letter()])
    assert "cannot be made" in keeper.problem
    assert len(keeper.heads("r")) == 1
    (tmp_path / "file").unlink()
    keeper.settle()
    assert (keeper.problem, stored(tmp_path / "file" / "state")) == ("", ["1 open"])
    keeper.close()


def test_folder_where_others_may_write_is_not_used(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    keeper = Keeper(tmp_path)
    assert "by others" in keeper.problem
    assert list(tmp_path.iterdir()) == []
    keeper.close()


def test_corrupt_database_is_moved_aside_with_what_can_be_read_of_it(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path)
    for number in range(1, 30):
        keeper.save(ended(incident(number)), [letter(number=number)])
    keeper.close()
    path = tmp_path / FILE_NAME
    whole = bytearray(path.read_bytes())
    for page in range(60, len(whole) // 4096, 9):
        whole[page * 4096 : page * 4096 + 2000] = os.urandom(2000)
    path.write_bytes(whole)

    keeper = Keeper(tmp_path)
    assert ".corrupt-" in keeper.notice
    assert "malformed" in keeper.notice or "database" in keeper.notice.lower()
    keeper.save(incident(31))
    assert keeper.problem == ""
    names = stored(tmp_path)
    assert "31 open" in names
    assert len(names) > 5  # the pages that are whole
    assert len(list(tmp_path.glob(f"{FILE_NAME}.corrupt-*"))) == 1
    keeper.close()


def test_database_that_becomes_garbage_or_vanishes_while_it_is_used(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path)
    keeper.save(incident(1))
    keeper.save(ended(incident(2)))
    shutil.rmtree(tmp_path)
    keeper.save(incident(3))
    assert "removed" in keeper.notice
    assert stored(tmp_path) == ["1 open", "3 open"]

    disk_of(keeper).database.rows("PRAGMA wal_checkpoint(TRUNCATE)")
    with (tmp_path / FILE_NAME).open("r+b") as file:
        file.write(os.urandom(1 << 16))
    disk_of(keeper).database.rows("PRAGMA shrink_memory")  # what it has in its cache it does not read
    for number in (4, 5, 6):
        keeper.save(incident(number))
        keeper.settle()
    assert ".corrupt-" in keeper.notice
    keeper.close()
    assert stored(tmp_path) == ["1 open", "3 open", "4 open", "5 open", "6 open"]
