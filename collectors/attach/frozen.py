"""Whether the control group (v2) of a process is frozen, as by ``docker pause``: it seems to sleep, and does nothing.

In a group of v1 its state is D. Cost to the process: none.
"""

from pathlib import Path, PurePosixPath

from pardbg.collectors.procfs.mounts import Mount, parse_mounts

_KIND, _EVENTS, _FROZEN = "cgroup2", "cgroup.events", "frozen 1"
_OWN_GROUP = "0::"


def is_frozen(pid: int, proc: Path = Path("/proc")) -> bool:
    """Whether it is; not if its group cannot be seen from here.

    Raises:
        OSError: if the process has ended.
    """
    groups = (proc / str(pid) / "cgroup").read_text(errors="replace").splitlines()
    path = next((line.removeprefix(_OWN_GROUP) for line in groups if line.startswith(_OWN_GROUP)), None)
    mounts = parse_mounts((proc / "self" / "mountinfo").read_text(errors="replace"))
    mount = next((mount for mount in mounts if mount.kind == _KIND), None)
    place = _events(mount, path) if mount is not None and path is not None else None
    try:
        return place is not None and _FROZEN in place.read_text().splitlines()
    except OSError:  # the root has no such file
        return False


def _events(mount: Mount, path: str) -> Path | None:
    group = PurePosixPath(path)
    return Path(mount.place) / group.relative_to(mount.root) / _EVENTS if group.is_relative_to(mount.root) else None
