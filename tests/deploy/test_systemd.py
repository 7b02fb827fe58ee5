"""The systemd unit and its examples, as systemd's own tools read them."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.deploy.agent_options import unknown_options

FOLDER = Path(__file__).resolve().parents[2] / "deploy/systemd"
UNIT = FOLDER / "pardbg-agent.service"
MOST_EXPOSED = "45"
"""Tenths of systemd's scale. Most of what is left would need a mount namespace."""
NAMESPACES = re.compile(
    r"^(?:Protect(?:System|Home|Proc|Clock|Kernel\w+|ControlGroups)|Private(?:Tmp|Devices|Mounts)|ProcSubset|RootDirectory|DynamicUser"
    r"|(?:ReadWrite|ReadOnly|Inaccessible|Exec|NoExec)Paths|Bind(?:ReadOnly)?Paths|TemporaryFileSystem)=",
    re.MULTILINE,
)

ANALYZE = shutil.which("systemd-analyze") or ""
needs_systemd = pytest.mark.skipif(not ANALYZE, reason="no systemd-analyze: apt-get install -y --no-install-recommends systemd")


def analyze(*command: str) -> str:
    done = subprocess.run([ANALYZE, *command], capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stderr


@needs_systemd
@pytest.mark.parametrize("drop_in", [None, "attach.conf"])
def test_systemd_understands_every_line(drop_in: str | None, tmp_path: Path) -> None:
    unit = tmp_path / UNIT.name
    shutil.copy(UNIT, unit)
    if drop_in:
        (tmp_path / f"{UNIT.name}.d").mkdir()
        shutil.copy(FOLDER / drop_in, tmp_path / f"{UNIT.name}.d")
    for path in tmp_path.rglob("*.*"):
        if path.is_file():
            path.write_text(path.read_text().replace("/opt/pardbg/bin/pardbg", "/bin/true"))
    assert analyze("verify", "--man=no", str(unit)) == ""


@needs_systemd
def test_unit_is_not_more_exposed_than_it_was() -> None:
    analyze("security", "--offline=yes", f"--threshold={MOST_EXPOSED}", "--no-pager", str(UNIT))


def test_nothing_gives_the_agent_a_mount_namespace_or_takes_the_gpus_away() -> None:
    assert NAMESPACES.findall(UNIT.read_text()) == []


@pytest.mark.parametrize("path", [UNIT, FOLDER / "agent.env", FOLDER / "attach.conf"], ids=lambda path: path.name)
def test_every_option_named_is_one_of_the_agent(path: Path) -> None:
    assert unknown_options(path.read_text()) == set()
