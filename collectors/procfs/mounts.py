"""``/proc/PID/mountinfo``: what is mounted where, in the process's own mount namespace."""

import re
from collections.abc import Iterator

from pardbg.watchdog.model.base import Noun

_OCTAL = re.compile(r"\\([0-7]{3})")


class Mount(Noun, frozen=True, kw_only=True):
    """One mount. ``root`` is the folder of its file system that is mounted at ``place``; ``options`` are the file system's."""

    number: int
    root: str
    place: str
    kind: str
    options: tuple[str, ...]


def parse_mounts(text: str) -> Iterator[Mount]:
    """Reads the lines; what is no such line is left out."""
    for line in text.splitlines():
        head, _, tail = line.partition(" - ")
        before, after = head.split(), tail.split()
        if len(before) >= 5 and before[0].isdecimal() and after:
            yield Mount(
                number=int(before[0]),
                root=_plain(before[3]),
                place=_plain(before[4]),
                kind=after[0],
                options=tuple(after[2].split(",")) if len(after) > 2 else (),
            )


def kind_of_mount(mounts: str, fdinfo: str) -> str | None:
    """The type of the file system that an open file lies on: ``mnt_id`` of ``/proc/PID/fdinfo/N`` looked up in the mounts."""
    found = re.search(r"^mnt_id:\s*(\d+)$", fdinfo, re.MULTILINE)
    if found is None:
        return None
    return next((mount.kind for mount in parse_mounts(mounts) if mount.number == int(found[1])), None)


def _plain(path: str) -> str:
    return _OCTAL.sub(lambda octal: chr(int(octal[1], 8)), path)
