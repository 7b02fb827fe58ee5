"""Which file counts the processes of a control group that the kernel killed for memory, and what it says."""

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from pardbg.collectors.procfs.mounts import Mount

_OOM_KILL = re.compile(r"^oom_kill (\d+)$", re.MULTILINE)


def oom_file(cgroup: str, mounts: Iterable[Mount]) -> str | None:
    """The path of the counter of a process.

    Args:
        cgroup: text of ``/proc/PID/cgroup``.
        mounts: of the reader's own namespace, where the counter is to be opened.
    """
    paths = {controllers: path for _, controllers, path in _read_lines(cgroup)}
    split = next((path for controllers, path in paths.items() if "memory" in controllers.split(",")), None)
    for mount in mounts:
        if split is not None and mount.kind == "cgroup" and "memory" in mount.options:
            return _place(mount, split, "memory.oom_control")
        if split is None and mount.kind == "cgroup2" and "" in paths:
            return _place(mount, paths[""], "memory.events")
    return None


def parse_oom_kills(text: str) -> int | None:
    """The count in ``memory.events`` (v2) or ``memory.oom_control`` (v1, since Linux 4.13)."""
    found = _OOM_KILL.search(text)
    return int(found[1]) if found else None


def _read_lines(cgroup: str) -> Iterable[tuple[str, str, str]]:
    for line in cgroup.splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        yield number, controllers, path


def _place(mount: Mount, path: str, name: str) -> str | None:
    """Where the group lies under the mount; None if it lies outside."""
    pure = PurePosixPath(path)
    if ".." in pure.parts or not pure.is_relative_to(mount.root):
        return None
    return str(PurePosixPath(mount.place) / pure.relative_to(mount.root) / name)
