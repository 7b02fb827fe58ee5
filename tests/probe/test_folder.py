"""Folders and files of a rank: its user's alone, whole, and nobody else's touched."""

import fcntl
import os
import stat
from pathlib import Path

import pytest

from pardbg.collectors.probe.folder import append_json, clear, make_private, make_root, open_log, write_json, write_whole


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("make", [make_private, make_root])
def test_a_new_folder_is_its_users_alone(tmp_path: Path, make: object) -> None:
    before = os.umask(0)
    try:
        assert callable(make)
        make(str(tmp_path / "new"))
    finally:
        os.umask(before)
    assert mode(tmp_path / "new") == 0o700


def test_the_users_own_root_keeps_its_mode(tmp_path: Path) -> None:
    """It may be a folder of a project, or `/tmp` in a container where everybody is root."""
    for given in (0o755, 0o1777, 0o700):
        tmp_path.chmod(given)
        make_root(str(tmp_path))
        assert mode(tmp_path) == given


def test_a_root_in_which_others_could_rename_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(PermissionError, match="others may write"):
        make_root(str(tmp_path))


def test_a_folder_of_our_own_name_is_closed_to_others(tmp_path: Path) -> None:
    (tmp_path / "ours").mkdir(mode=0o755)
    make_private(str(tmp_path / "ours"))
    assert mode(tmp_path / "ours") == 0o700


def test_links_files_and_folders_of_others_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    (tmp_path / "file").touch()
    for name in ("link", "file"):
        with pytest.raises(PermissionError):
            make_private(str(tmp_path / name))
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(PermissionError):
        make_private(str(tmp_path / "folder"))
    with pytest.raises(FileNotFoundError):
        make_private(str(tmp_path / "absent" / "folder"))


def test_files_are_replaced_as_a_whole_and_links_not_followed(tmp_path: Path) -> None:
    path, other = tmp_path / "file", tmp_path / "other"
    other.write_text("not ours")
    write_json(str(path), {"a": 1})
    before = path.stat().st_ino
    write_whole(str(path), b"new")
    assert (path.read_bytes(), mode(path)) == (b"new", 0o600)
    assert path.stat().st_ino != before
    path.unlink()
    path.symlink_to(other)
    write_whole(str(path), b"newer")
    assert (path.is_symlink(), other.read_text()) == (False, "not ours")
    (tmp_path / "lines").symlink_to(other)
    with pytest.raises(OSError, match="symbolic links"):
        append_json(str(tmp_path / "lines"), {})
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "lines", "other"]


def test_lines_are_added_and_files_cleared(tmp_path: Path) -> None:
    for number in range(3):
        append_json(str(tmp_path / "lines"), {"n": number})
    assert (tmp_path / "lines").read_text() == '{"n": 0}\n{"n": 1}\n{"n": 2}\n'
    clear(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_log_has_a_high_number_and_is_not_inherited(tmp_path: Path) -> None:
    """Whoever closes his files and opens new ones gets low numbers: ours must not be among them."""
    descriptor = open_log(str(tmp_path / "log"))
    try:
        assert descriptor > 100
        assert fcntl.fcntl(descriptor, fcntl.F_GETFD) & fcntl.FD_CLOEXEC
        os.write(descriptor, b"x")
    finally:
        os.close(descriptor)
    assert (tmp_path / "log").read_bytes() == b"x"
