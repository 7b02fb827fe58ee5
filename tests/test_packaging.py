"""What is installed is whole, and PyPI's `watchdog` stays itself."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def run(*command: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, env={**os.environ, **environment}, timeout=300
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"  # a copy: setuptools writes into the tree it builds, and several tests may build at once
    shutil.copytree(
        ROOT, source, symlinks=True, ignore=shutil.ignore_patterns(".git", ".venv", "build", "*.egg-info", ".*_cache")
    )
    built = run(sys.executable, "-m", "pip", "wheel", "--no-deps", "--quiet", "-w", str(folder), str(source), folder=folder)
    assert built.returncode == 0, built.stderr
    (found,) = folder.glob("pardbg-*.whl")
    return found


def test_wheel_holds_every_file_of_the_three_folders(wheel: Path) -> None:
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("pardbg/")}
    for folder in ("watchdog", "collectors", "dashboards"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in {".py", ".json", ".j2", ".yaml", ".md"} and "__pycache__" not in path.parts:
                assert f"pardbg/{path.relative_to(ROOT)}" in inside
    assert "pardbg/py.typed" in inside


def test_wheel_works_where_nothing_of_the_checkout_is(wheel: Path, tmp_path: Path) -> None:
    installed = run(
        sys.executable,
        "-m",
        "pip",
        "install",
        "--no-deps",
        "--quiet",
        "--target",
        str(tmp_path / "site"),
        str(wheel),
        folder=tmp_path,
    )
    assert installed.returncode == 0, installed.stderr
    code = "import sys, pardbg; print(pardbg.__file__); from pardbg.watchdog.commands.main import main; main(['sim', '--list'])"
    shown = run(sys.executable, "-c", code, folder=tmp_path, PYTHONPATH=str(tmp_path / "site"))
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith(str(tmp_path / "site"))
    assert "missing-participant" in shown.stdout


def test_pypi_watchdog_is_not_shadowed_from_the_root_of_the_checkout() -> None:
    code = (
        "import watchdog.events, pardbg.watchdog.errors; print(watchdog.events.FileSystemEvent.__module__, watchdog.__file__)"
    )
    safe = run(sys.executable, "-c", code, folder=ROOT, PYTHONSAFEPATH="1")
    assert safe.returncode == 0, safe.stderr
    assert "site-packages" in safe.stdout


def test_source_folder_refuses_its_bare_name() -> None:
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import watchdog"
    bare = run(sys.executable, "-c", code, folder=ROOT, PYTHONSAFEPATH="1")
    assert bare.returncode != 0
    assert "import pardbg.watchdog" in bare.stderr
