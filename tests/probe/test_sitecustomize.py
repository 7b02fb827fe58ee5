"""A Python that starts with the probe's `sitecustomize.py` in its path is as without it, of whatever version."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from pardbg.collectors import probe

STARTUP = str(Path(probe.__path__[0]).resolve() / "startup")
ROOT = Path("/root/.pyenv/versions")
ALL = [Path(sys.executable), *(sorted(ROOT.glob("*/bin/python")) if os.access("/root", os.R_OK) else [])]
SOME = [python for python in ALL if python.parts[-3] in {Path(sys.executable).parts[-3], "2.7.18", "3.6.15"}]
SHOW = "import sys; s = sys.modules.get('sitecustomize'); print(getattr(s, 'mark', None), getattr(s, '__file__', None))"


def run(*words: str, path: list[str], python: str = sys.executable, rank: str | None = "0") -> tuple[int, str, str]:
    variables = {"PATH": os.defpath, "PYTHONPATH": ":".join(path), "PYTHONDONTWRITEBYTECODE": "1"}
    if rank is not None:
        variables["RANK"] = rank
    done = subprocess.run([python, *words], env=variables, capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stdout, done.stderr


def assert_same_behind_us(folders: list[str], *words: str, python: str = sys.executable) -> tuple[int, str, str]:
    plain = run(*words, path=folders, python=python)
    assert run(*words, path=[STARTUP, *folders], python=python) == plain
    return plain


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "own").mkdir()
    return tmp_path / "own"


@pytest.mark.parametrize("rank", [None, "0"])
@pytest.mark.parametrize("python", ALL, ids=lambda path: path.parts[-3])
def test_every_python_starts_in_silence(python: Path, rank: str | None) -> None:
    for options in ([], ["-S"], ["-E"]):
        assert run(*options, "-c", "print(1)", path=[STARTUP], python=str(python), rank=rank) == (0, "1\n", "")


@pytest.mark.parametrize("option", ["-S", "-E", "-I"])
def test_a_python_that_takes_no_path_does_not_know_us(option: str) -> None:
    known = "import sys; print('_pardbg_probe' in sys.modules)"
    assert run(option, "-c", known, path=[STARTUP]) == (0, "False\n", "")
    assert run("-c", known, path=[STARTUP]) == (0, "True\n", "")


def test_without_a_rank_nothing_is_loaded() -> None:
    loaded = "import sys; print(*sorted(set(sys.modules) - {'sitecustomize'}))"
    assert run("-c", loaded, path=[STARTUP], rank=None) == run("-c", loaded, path=[], rank=None)


def test_with_a_rank_and_without_torch_little_is_loaded() -> None:
    loaded = "import sys; print(*sorted(name for name in sys.modules if name.startswith('_pardbg_probe')))"
    expected = "_pardbg_probe _pardbg_probe.harmless _pardbg_probe.import_watch _pardbg_probe.start\n"
    assert run("-c", loaded, path=[STARTUP]) == (0, expected, "")


@pytest.mark.parametrize("python", SOME, ids=lambda path: path.parts[-3])
@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("mark = 5", 0),
        ("raise ValueError('mine')", 0),
        ("raise ImportError('mine')", 0),
        ("import no_such_module", 0),
        ("import sys; del sys.modules['sitecustomize']", None),
        ("def (", 0),
    ],
)
def test_the_users_own_sitecustomize_behind_us_does_what_it_did(
    folder: Path, python: Path, body: str, code: int | None
) -> None:
    (folder / "sitecustomize.py").write_text(body + "\n")
    seen, _, _ = assert_same_behind_us([str(folder)], "-c", SHOW, python=str(python))
    assert code is None or seen == code


@pytest.mark.parametrize("python", SOME, ids=lambda path: path.parts[-3])
def test_where_it_ends_python_the_end_is_the_same_but_for_a_frame_of_ours(folder: Path, python: Path) -> None:
    (folder / "sitecustomize.py").write_text("import sys; sys.exit(3)\n")
    plain, ours = (run("-c", SHOW, path=path, python=str(python)) for path in ([str(folder)], [STARTUP, str(folder)]))
    assert (ours[:2], ours[2].splitlines()[-1:]) == (plain[:2], plain[2].splitlines()[-1:])


@pytest.mark.parametrize("python", SOME, ids=lambda path: path.parts[-3])
def test_it_may_be_a_package_or_bytecode_or_in_an_archive(tmp_path: Path, folder: Path, python: Path) -> None:
    (folder / "sitecustomize").mkdir()
    (folder / "sitecustomize" / "__init__.py").write_text("mark = 'package'\n")
    code, out, _ = assert_same_behind_us([str(folder)], "-c", SHOW, python=str(python))
    assert code == 0
    assert "package" in out.partition(" ")[0]

    compiled = tmp_path / "compiled"
    compiled.mkdir()
    source = tmp_path / "source.py"
    source.write_text("mark = 'bytecode'\n")
    make = f"import py_compile; py_compile.compile({str(source)!r}, {str(compiled / 'sitecustomize.pyc')!r})"
    assert run("-c", make, path=[], python=str(python), rank=None)[0] == 0
    code, out, _ = assert_same_behind_us([str(compiled)], "-c", SHOW, python=str(python))
    assert code == 0
    assert "bytecode" in out.partition(" ")[0]

    if "2.7" in python.parts[-3]:
        return  # `imp` looks into no archives
    archive = tmp_path / "archive.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("sitecustomize.py", "mark = 'archive'\n")
    code, out, _ = assert_same_behind_us([str(archive)], "-c", SHOW, python=str(python))
    assert code == 0
    assert "archive" in out.partition(" ")[0]


def test_a_folder_without_init_is_taken_for_a_package_as_ever(folder: Path) -> None:
    (folder / "sitecustomize").mkdir()
    assert_same_behind_us([str(folder)], "-c", "import sys; print('sitecustomize' in sys.modules)")


def test_the_users_own_sitecustomize_before_us_is_the_only_one(folder: Path) -> None:
    (folder / "sitecustomize.py").write_text("mark = 'first'\n")
    code, out, err = run("-c", SHOW, path=[str(folder), STARTUP])
    assert (code, out.split()[0], err) == (0, "first", "")


def test_two_installations_in_one_path_do_not_call_each_other_for_ever(tmp_path: Path, folder: Path) -> None:
    (folder / "sitecustomize.py").write_text("mark = 'behind both'\n")
    (tmp_path / "link").symlink_to(STARTUP)
    for path in ([STARTUP, str(tmp_path / "link")], [str(tmp_path / "link"), STARTUP], [STARTUP, STARTUP]):
        code, out, err = run("-c", SHOW, path=[*path, str(folder)])
        assert (code, out.rpartition(" ")[0], err) == (0, "behind both", "")


def test_a_probe_that_cannot_be_loaded_is_not_noticed(tmp_path: Path, folder: Path) -> None:
    (folder / "sitecustomize.py").write_text("mark = 5\n")
    (tmp_path / "probe" / "startup").mkdir(parents=True)
    broken = tmp_path / "probe" / "startup" / "sitecustomize.py"
    broken.write_bytes((Path(STARTUP) / "sitecustomize.py").read_bytes())
    (tmp_path / "probe" / "__init__.py").write_text("raise RuntimeError('broken')\n")
    code, out, err = run("-c", SHOW, path=[str(broken.parent), str(folder)])
    assert (code, out.split()[0], err) == (0, "5", "")


def test_it_is_switched_off_by_its_variable() -> None:
    known = "import os, sys; print('_pardbg_probe' in sys.modules)"
    variables = {"PATH": os.defpath, "PYTHONPATH": STARTUP, "RANK": "0", "PARDBG_PROBE": "0"}
    done = subprocess.run([sys.executable, "-c", known], env=variables, capture_output=True, text=True, check=True, timeout=60)
    assert (done.stdout, done.stderr) == ("False\n", "")
