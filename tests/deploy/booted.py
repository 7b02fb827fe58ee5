"""A real systemd as the first process of namespaces of its own: units are started by it as on a node, filters included.

The machine is not changed: `/etc` and `/proc/sys` are read-only in there, `/run`, `/opt`, `/var/lib` and `/dev/shm` are empty,
the network is a loopback of its own, and all ends with the `with`. Start: 0.3 s. Limits of memory and processors are not
applied: its control group has no controllers.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.slurm.cluster import DIE_WITH_US
from tests.slurm.reachable import opening_script, private_places

SYSTEMD = Path("/lib/systemd/systemd")
PROGRAMS = ("systemctl", "unshare", "nsenter", "setpriv", "ip")
READY_S = 20.0
_TARGET = "[Unit]\nDefaultDependencies=no\n"
_TARGETS = ("trial.target", "sysinit.target", "basic.target")
_EMPTY = ("/run", "/opt", "/var/lib", "/dev/shm")  # noqa: S108 - mount points
_OUTSIDE = """\
echo $$ > {group}/cgroup.procs
exec unshare --mount --pid --fork --cgroup --uts --ipc --net --kill-child sh -e {inside}
"""
_INSIDE = """\
{opened}
mount -t proc proc /proc
ip link set lo up
mount -t tmpfs groups /sys/fs && mkdir /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup
for folder in /etc /proc/sys; do mount --bind $folder $folder && mount -o remount,bind,ro $folder; done
for folder in {empty}; do mount -t tmpfs -o mode=755 empty $folder; done
chmod 1777 /dev/shm
mkdir -p /run/systemd && cp -r {work}/units /run/systemd/system
{prepare}
exec env -i container=lxc SYSTEMD_UNIT_PATH=/run/systemd/system PATH=/usr/sbin:/usr/bin:/sbin:/bin \\
    {systemd} --system --unit=trial.target --log-target=console --show-status=no
"""


def control_groups() -> Path | None:
    """Where control groups of version 2 are mounted."""
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    return next((Path(mount[1]) for mount in mounts if mount[2] == "cgroup2"), None)


def why_not() -> str:
    """Why systemd cannot be started here; empty if it can."""
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing or not SYSTEMD.exists():
        return f"{', '.join(missing) or SYSTEMD} not installed: apt-get install -y --no-install-recommends systemd iproute2"
    if os.geteuid() != 0:
        return "namespaces: only root may"
    return "" if control_groups() is not None else "no cgroup2 is mounted here"


@dataclass(frozen=True)
class Booted:
    """A systemd that runs. ``pid`` is its number outside; ``work`` is a folder for everybody, the same in there."""

    pid: int
    work: Path

    def command(self, *command: str) -> list[str]:
        """What to start so that the command runs in there."""
        return ["nsenter", f"--target={self.pid}", "--mount", "--pid", "--uts", "--ipc", "--net", *command]

    def run(self, *command: str, timeout_s: float = READY_S) -> str:
        """What a command says in there, whether it succeeds or not."""
        done = subprocess.run(
            self.command(*command), capture_output=True, text=True, timeout=timeout_s, check=False, stdin=subprocess.DEVNULL
        )
        return done.stdout + done.stderr


@contextlib.contextmanager
def booted(units: Mapping[str, str], prepare: str) -> Iterator[Booted]:
    """Systemd with these units, none of them started.

    Args:
        units: texts by file name, drop-ins by ``UNIT.d/NAME.conf``; ``{work}`` in them is `Booted.work`.
        prepare: shell commands, run before it starts, in its namespaces.
    """
    work = Path(tempfile.mkdtemp(prefix="pardbg-boot-", dir="/tmp"))  # short
    work.chmod(0o755)
    (work / "work").mkdir()
    (work / "work").chmod(0o1777)
    (work / "stash").mkdir()
    for name, text in {**units, **dict.fromkeys(_TARGETS, _TARGET)}.items():
        path = work / "units" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("{work}", str(work / "work")))
    group = (control_groups() or work) / work.name
    group.mkdir()
    first = _start(work, group, prepare)
    try:
        machine = Booted(_wait_for_child(first), work / "work")
        _wait_until_up(machine, work)
        yield machine
    finally:
        first.send_signal(signal.SIGKILL)  # with it goes systemd, and with that every process in there
        first.wait()
        _remove(group)
        shutil.rmtree(work, ignore_errors=True)


def _start(work: Path, group: Path, prepare: str) -> "subprocess.Popen[bytes]":
    inside, outside = work / "inside.sh", work / "outside.sh"
    opened = opening_script(private_places(), work / "stash").partition("; echo open")[0]
    inside.write_text(_INSIDE.format(opened=opened, empty=" ".join(_EMPTY), work=work, prepare=prepare, systemd=SYSTEMD))
    outside.write_text(_OUTSIDE.format(group=group, inside=inside))
    with (work / "log").open("wb") as log:
        return subprocess.Popen(
            [*DIE_WITH_US, "sh", "-e", str(outside)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _wait_for_child(parent: "subprocess.Popen[bytes]") -> int:
    until_s = time.monotonic() + READY_S
    while time.monotonic() < until_s and parent.poll() is None:
        if children := Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split():
            return int(children[0])
        time.sleep(0.02)
    raise TimeoutError("unshare has started nothing")


def _wait_until_up(machine: Booted, work: Path) -> None:
    until_s = time.monotonic() + READY_S
    while "active" not in machine.run("systemctl", "is-active", "trial.target").split():
        if time.monotonic() > until_s:
            raise TimeoutError(f"systemd is not up: {(work / 'log').read_text()[-2000:]}")
        time.sleep(0.05)


def _remove(group: Path) -> None:
    """Removes control groups once their processes have gone."""
    for folder, _, _ in os.walk(group, topdown=False):
        for _ in range(100):
            with contextlib.suppress(OSError):
                Path(folder).rmdir()
                break
            time.sleep(0.02)
