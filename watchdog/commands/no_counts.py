"""Why a file that was named holds no routing counts that can be read, where a look at its first bytes tells."""

import stat
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

_COMPRESSED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"PK\x03\x04": "zip"}
_HEAD_BYTES = 64


class Reason(NamedTuple):
    """What is wrong with a file, and what to try."""

    why: str
    remedy: str


def why_no_counts(paths: Iterable[Path]) -> Reason | None:
    """Of the first file that tells it. A FIFO is not opened: that would let its writer go on."""
    return next(filter(None, map(_look_at, paths)), None)


def _look_at(path: Path) -> Reason | None:
    try:
        mode = path.stat().st_mode
        if stat.S_ISREG(mode):
            with path.open("rb") as file:
                return _judge(path, file.read(_HEAD_BYTES))
    except OSError:
        return None
    if stat.S_ISDIR(mode):
        return None
    kind = "a FIFO (a pipe with a name)" if stat.S_ISFIFO(mode) else "a socket or a device"
    return Reason(f"{path} is {kind}, no regular file, and was not read", "write the counts to a file first, and give that")


def _judge(path: Path, head: bytes) -> Reason | None:
    for magic, name in _COMPRESSED.items():
        if head.startswith(magic):
            return Reason(f"{path} is compressed ({name})", "decompress it first")
    if not head.strip():
        return Reason(f"{path} is empty", "wait for the first steps")
    if head.lstrip().startswith(b"["):
        return Reason(f"{path} is one JSON array, not an object a line", f"jq -c '.[]' {path} > routing.jsonl")
    return None
