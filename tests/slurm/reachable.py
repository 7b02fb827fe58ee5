"""Lets other users run our interpreter and our code where these lie below a private folder such as ``/root``.

In a mount namespace of the cluster's own the private folder is replaced by an empty one in which only those paths are bound.
The machine itself is not changed, and the namespace goes with its last process.
"""

import shlex
import stat
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def private_places() -> dict[Path, list[Path]]:
    """By folder that others may not enter: what of ours lies below it."""
    found: dict[Path, list[Path]] = {}
    for needed in sorted({Path(sys.base_prefix).resolve(), Path(sys.prefix).resolve(), ROOT}):
        for folder in reversed(needed.parents):
            if not folder.stat().st_mode & stat.S_IXOTH:
                found.setdefault(folder, []).append(needed)
                break
    return found


def opening_script(places: dict[Path, list[Path]], stash: Path) -> str:
    """Shell commands that make them reachable in a mount namespace, by way of an empty folder; then say ``open``, and stay."""
    lines = ["set -e", "mount --make-rprivate /", f"mount -t tmpfs -o mode=700 stash {stash}"]
    kept = [path for paths in places.values() for path in paths]
    for index, path in enumerate(kept):
        lines += [f"mkdir {stash}/{index}", f"mount --bind {shlex.quote(str(path))} {stash}/{index}"]
    lines += [f"mount -t tmpfs -o mode=755 open {shlex.quote(str(folder))}" for folder in places]
    for index, path in enumerate(kept):
        lines += [f"mkdir -p {shlex.quote(str(path))}", f"mount --bind {stash}/{index} {shlex.quote(str(path))}"]
    return "; ".join([*lines, "echo open", "exec sleep infinity"])
