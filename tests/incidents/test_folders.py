"""Folders of evidence: whole or not there."""

import os
from pathlib import Path

import pytest

from pardbg.watchdog.incidents.folders import Folders, size_of
from pardbg.watchdog.incidents.ids import moment_of, new_id
from tests.incidents.making import MORNING_S

ID = new_id(MORNING_S, "w")


def partial(folders: Folders, incident_id: str = ID) -> Path:
    return folders.partial(incident_id, "1")


def scanned(folders: Folders, incident_id: str, mark: str = "first", size: int = 10) -> None:
    folder = partial(folders, incident_id)
    folder.mkdir(mode=0o700)
    (folder / "stack_rank0_s0.json").write_text(mark + "x" * size)
    (folder / "report.json").write_text("{\n}\n")


def mark_of(folders: Folders, incident_id: str = ID, *, latest: bool = False) -> str:
    place = folders.find_latest(incident_id) if latest else folders.find(incident_id)
    return (place / "stack_rank0_s0.json").read_text()[:5] if place else ""


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    made = Folders(tmp_path)
    made.begin()
    return made


def test_id_sorts_by_time_and_tells_worlds_apart() -> None:
    assert ID.startswith("20261130-")
    assert moment_of(ID) == MORNING_S
    assert len({new_id(MORNING_S, "w"), new_id(MORNING_S, "v"), new_id(MORNING_S, "w", 1), new_id(MORNING_S + 1, "w")}) == 4
    assert new_id(MORNING_S, "\udcff") > new_id(MORNING_S - 1, "w")
    with pytest.raises(ValueError, match="no id"):
        moment_of("../../etc")


def test_evidence_takes_its_place_whole_and_the_newest_lies_beside_the_first(folders: Folders) -> None:
    scanned(folders, ID)
    assert folders.find(ID) is None
    assert folders.keep(partial(folders), ID)
    assert mark_of(folders) == "first"
    assert folders.find_latest(ID) is None
    for mark in ("newer", "third"):
        scanned(folders, ID, mark)
        assert folders.keep(partial(folders), ID)
        assert (mark_of(folders), mark_of(folders, latest=True)) == ("first", mark)
    root = partial(folders).parent
    assert sorted(path.name for path in root.iterdir()) == [ID, f"{ID}.latest"]
    (root / f"{ID}.latest").rename(root / f".{ID}.old")  # killed between the two renames
    folders.begin()
    assert (mark_of(folders), mark_of(folders, latest=True)) == ("first", "third")
    both = size_of(root / ID) + size_of(root / f"{ID}.latest")
    assert folders.prune((), began_before_s=0, most_bytes=both) == 0
    assert folders.prune((), began_before_s=0, most_bytes=both - 1) == 1
    assert list(root.iterdir()) == []


@pytest.mark.parametrize("last", [None, "", '{\n "schema": "pardbg.rep'])
def test_evidence_of_a_scan_that_could_not_save_all_leaves_the_older_one(folders: Folders, last: str | None) -> None:
    scanned(folders, ID)
    assert folders.keep(partial(folders), ID)
    scanned(folders, ID, "newer")
    (partial(folders) / "report.json").unlink()
    if last is not None:
        (partial(folders) / "report.json").write_text(last)
    assert not folders.keep(partial(folders), ID)
    assert mark_of(folders) == "first"
    assert not partial(folders).exists()


def test_what_a_killed_agent_left_is_put_right(folders: Folders, tmp_path: Path) -> None:
    root = partial(folders).parent
    other, third = new_id(MORNING_S + 1, "w"), new_id(MORNING_S + 2, "w")
    for one, mark in ((ID, "first"), (other, "other")):
        scanned(folders, one, mark)
        folders.keep(partial(folders, one), one)
    (root / ID).rename(root / f".{ID}.old")  # killed between the two renames
    scanned(folders, ID, "newer")
    (root / f".{other}.old").mkdir()  # killed before the old one was removed
    scanned(folders, third)  # killed while it scanned
    (root / "notes.txt").write_text("somebody's")
    (root / ".mine.partial").mkdir()

    Folders(tmp_path).begin()
    assert (mark_of(folders), mark_of(folders, other), mark_of(folders, third)) == ("first", "other", "")
    assert sorted(path.name for path in root.iterdir()) == sorted([ID, other, "notes.txt", ".mine.partial"])


def test_oldest_evidence_goes_first_and_that_of_open_incidents_never(folders: Folders) -> None:
    ids = [new_id(MORNING_S + day * 86400, "w") for day in range(6)]
    for one in ids:
        scanned(folders, one, size=1 << 16)
        folders.keep(partial(folders, one), one)
    one_size = size_of(folders.find(ids[0]) or Path())

    def left() -> list[int]:
        return [day for day, one in enumerate(ids) if folders.find(one)]

    assert folders.prune({ids[0]}, began_before_s=MORNING_S + 2 * 86400, most_bytes=1 << 40) == 1
    assert left() == [0, 2, 3, 4, 5]
    assert folders.prune({ids[0], ids[3]}, began_before_s=0, most_bytes=one_size * 3) == 2
    assert left() == [0, 3, 5]
    assert folders.prune({ids[0], ids[3]}, began_before_s=0, most_bytes=0) == 1
    assert left() == [0, 3]


def test_links_are_neither_measured_nor_followed(folders: Folders, tmp_path: Path) -> None:
    treasure = tmp_path / "treasure"
    treasure.mkdir()
    (treasure / "gold").write_bytes(bytes(1 << 20))
    scanned(folders, ID)
    (partial(folders) / "way").symlink_to(treasure)
    (partial(folders) / "gold").symlink_to(treasure / "gold")
    os.mkfifo(partial(folders) / "pipe")
    assert folders.keep(partial(folders), ID)
    assert size_of(folders.find(ID) or Path()) < 1 << 16
    assert folders.prune((), began_before_s=MORNING_S + 1, most_bytes=0) == 1
    assert (treasure / "gold").stat().st_size == 1 << 20
    assert folders.find("../treasure") is None
