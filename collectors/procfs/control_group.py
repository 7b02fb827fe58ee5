"""Where the counters of a process's control group lie, for both versions of control groups."""

from collections.abc import Iterable
from pathlib import PurePosixPath

from pardbg.collectors.procfs.mounts import Mount


def counter_file(cgroup: str, mounts: Iterable[Mount], controller: str, first: str, second: str) -> str | None:
    """The path of a counter of a process; None if it lies outside what is mounted.

    Args:
        cgroup: text of ``/proc/PID/cgroup``.
        mounts: of the reader's own namespace, where the counter is to be opened.
        controller: whose counter it is in version 1, e.g. ``memory``.
        first: its name there.
        second: its name in version 2.
    """
    paths = {controllers: path for _, controllers, path in _read_lines(cgroup)}
    split = next((path for controllers, path in paths.items() if controller in controllers.split(",")), None)
    for mount in mounts:
        if split is not None and mount.kind == "cgroup" and controller in mount.options:
            return _place(mount, split, first)
        if split is None and mount.kind == "cgroup2" and "" in paths:
            return _place(mount, paths[""], second)
    return None


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
