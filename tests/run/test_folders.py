"""The job's folder: only ever in a root that is the user's own."""

import os
from pathlib import Path

import pytest

from pardbg.watchdog.run.folders import RefusedError, make_job_folder, why_refused

UID = os.getuid()
is_root = pytest.mark.skipif(UID != 0, reason="only root can give files away")


def test_root_and_folder_are_made_for_the_user_alone(tmp_path: Path) -> None:
    folder = tmp_path / "root" / "job-a"
    assert why_refused(str(folder.parent), UID) == ""
    assert not folder.parent.exists()
    make_job_folder(str(folder), UID)
    make_job_folder(str(folder), UID)
    assert [part.stat().st_mode & 0o777 for part in (folder.parent, folder)] == [0o700, 0o700]


def linked(root: Path) -> None:
    (root.parent / "target").mkdir()
    root.symlink_to(root.parent / "target")


def dangling(root: Path) -> None:
    root.symlink_to(root.parent / "target")


def plain_file(root: Path) -> None:
    root.touch()


def fifo(root: Path) -> None:
    os.mkfifo(root)


def foreign(root: Path) -> None:
    root.mkdir()
    os.chown(root, 65534, 65534)


@pytest.mark.parametrize(
    ("plant", "words"),
    [
        (linked, "is a link"),
        (dangling, "is a link"),
        (plain_file, "is no folder"),
        (fifo, "is no folder"),
        pytest.param(foreign, "belongs to user 65534", marks=is_root),
    ],
)
@pytest.mark.parametrize("is_job", [False, True])
def test_what_is_not_the_users_own_folder_is_refused(tmp_path: Path, plant: object, words: str, *, is_job: bool) -> None:
    folder = tmp_path / "root" / "job-a"
    if is_job:
        folder.parent.mkdir()
    assert callable(plant)
    plant(folder if is_job else folder.parent)
    with pytest.raises(RefusedError, match=words):
        make_job_folder(str(folder), UID)
    assert (words in why_refused(str(folder.parent), UID)) is not is_job
    assert not list(tmp_path.glob("target/*"))


def test_a_root_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="cannot be made"):
        make_job_folder(str(tmp_path / "no" / "such" / "job-a"), UID)
