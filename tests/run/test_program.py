"""Which file a command means, and what is said where there is none."""

import errno
import os
from pathlib import Path

import pytest

from pardbg.watchdog.errors import InputError
from pardbg.watchdog.run.program import explain_failed_start, find_program


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """``first`` holds a folder and a plain file, ``second`` programs; the present folder a program and scripts."""
    for name, mode in {"first/plain": 0o644, "second/plain": 0o755, "second/tool": 0o755, "first/only": 0o644}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch(mode)
    (tmp_path / "first/tool").mkdir()
    for name, mode in {"here": 0o755, "train.py": 0o644, "run.sh": 0o644}.items():
        (tmp_path / name).touch(mode)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("word", "search_path", "found"),
    [
        ("tool", "first:second", "second/tool"),
        ("plain", "first:second", "second/plain"),
        ("here", "first:", "./here"),
        ("here", ":first", "./here"),
        ("second/tool", "", "second/tool"),
        ("./here", "first", "./here"),
    ],
)
def test_the_first_executable_file_is_found(folders: Path, word: str, search_path: str, found: str) -> None:
    assert (folders / find_program(word, search_path)).samefile(folders / found)


@pytest.mark.parametrize(
    ("word", "words"),
    [
        ("nothing", "no program 'nothing' in PATH"),
        ("", "no program '' in PATH"),
        ("./nothing", "./nothing is not there"),
        ("./first", "./first is a folder"),
        ("./train.py", "try pardbg run -- python ./train.py"),
        ("./run.sh", "try pardbg run -- bash ./run.sh"),
        ("train.py", "try pardbg run -- python ./train.py"),
        ("only", "only is not executable"),
    ],
)
@pytest.mark.usefixtures("folders")
def test_what_cannot_be_started_is_told_in_one_line(word: str, words: str) -> None:
    with pytest.raises(InputError) as refused:
        find_program(word, "first:second")
    line = f"{refused.value}; {refused.value.remedy}"
    assert words in line
    assert "\n" not in line


def test_a_missing_interpreter_is_not_a_missing_program(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/no/such/python\n")
    error = OSError(errno.ENOENT, os.strerror(errno.ENOENT))
    assert "interpreter" in str(explain_failed_start(str(script), error))


def test_any_other_reason_is_the_systems() -> None:
    assert "Argument list too long" in str(explain_failed_start("/bin/true", OSError(errno.E2BIG, os.strerror(errno.E2BIG))))
