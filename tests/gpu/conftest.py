"""The stand-in for NVML, built once."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.gpu.driver import Driver, library_path

SOURCE = Path(__file__).with_name("nvml_stand_in.c")


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``new/libnvidia-ml.so.1``, and ``old/``: that of a driver of some years ago."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler: apt-get install gcc")
    folder = tmp_path_factory.mktemp("nvml")
    for name, options in (("new", []), ("old", ["-DOLD"])):
        (folder / name).mkdir()
        target = folder / name / "libnvidia-ml.so.1"
        subprocess.run([compiler, *options, "-O1", "-shared", "-fPIC", "-pthread", "-o", target, SOURCE], check=True)
    return folder


@pytest.fixture
def driver(libraries: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Driver:
    """A machine with two GPUs."""
    state = tmp_path / "state"
    monkeypatch.setenv("LD_LIBRARY_PATH", library_path(libraries / "new"))
    monkeypatch.setenv("NVML_STAND_IN", str(state))
    return Driver(state)
