"""The folder into which a rank writes, made in its user's name before it is attached to. Runs in a child.

It lies where a probe's folder would, with a `rank.json` that says where the dump will be, so that whoever reads what probes
write finds it. Cost: a few system calls. It is removed when it has been read; should pardbg be killed before, `pardbg run`
removes it some time after the process has ended.
"""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec

from pardbg.collectors.attach.request import Target
from pardbg.collectors.probe.folder import make_private, make_root, write_whole
from pardbg.collectors.probe.places import RANK_FILE, dump_prefix

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class PreparedError(Exception):
    """The rank has a probe, whose folder it is."""


def make_folder(target: Target) -> None:
    """Makes it.

    Raises:
        OSError: if that cannot be done.
        PreparedError: if a probe has made it.
    """
    own = {
        "schema": "pardbg.rank/1",
        "rank": target.rank,
        "pid": target.pid,
        "started_ticks": target.started_ticks,
        "boot_id": _BOOT_ID.read_text(encoding="ascii").strip(),
        "dumps": dump_prefix(target.folder),
    }
    with _as_user(target.uid):
        make_root(target.root)
        make_private(target.folder)
        path = Path(target.folder, RANK_FILE)
        content = msgspec.json.encode(own)
        if path.is_symlink() or (path.exists() and path.read_bytes() != content):
            raise PreparedError
        write_whole(os.fspath(path), content)


def remove_folder(target: Target) -> None:
    """Removes it with all that is in it. A rank that is late then writes nothing."""
    with _as_user(target.uid):
        shutil.rmtree(target.folder, ignore_errors=True)


@contextlib.contextmanager
def _as_user(uid: int) -> Iterator[None]:
    """What is done within is done with that user's rights: only root can, and need, change them."""
    before = os.geteuid()
    if uid != before:
        os.seteuid(uid)
    try:
        yield
    finally:
        if uid != before:
            os.seteuid(before)
