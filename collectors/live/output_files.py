"""The regular files that a process writes its output to. Runs in a reader's child: a dead mount may keep it for ever.

They are reached through ``/proc/PID/fd/N``. That link does not lead along a path: it opens the very object that the process
has open, whatever namespace that lies in and whatever its name means here, so that nobody can put another file in its place.
A pipe, a terminal or a socket is looked at, never opened. Only what the process may write counts: it could hold a descriptor
that merely points at another's file.
"""

import contextlib
import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from pardbg.collectors.opening import OpenedFile, open_regular, read_tail
from pardbg.collectors.procfs.stat import parse_stat
from pardbg.collectors.reading_job import OutputFile, OutputRequest, OutputsListed, OutputsRequest
from pardbg.collectors.walking import printable
from pardbg.watchdog.errors import ParseError

_STANDARD = (1, 2)
_MOST_FURTHER_FILES = 16
_MOST_ANCESTORS = 4
_TEXT_NAME = re.compile(rb"fault|trace|stack|hang|debug|std(?:err|out)|\.(?:log|txt|err|out)$", re.IGNORECASE)
# They start ranks and write no tracebacks: a file shared with them is the rank's own.
_QUIET = frozenset(
    (
        *("sh", "bash", "dash", "zsh", "ksh", "fish", "env", "nohup", "timeout", "stdbuf", "setsid", "numactl", "taskset"),
        *("tini", "dumb-init", "docker-init", "srun", "slurmstepd", "systemd", "init"),
    )
)


def list_outputs(request: OutputsRequest) -> OutputsListed:
    """Finds the files of one process, each once.

    Raises:
        OSError: if the process has gone, or may not be looked at.
    """
    parent = _check_alive(request.pid, request.started_ticks)
    descriptors = _further(request.pid) if request.is_wide else _STANDARD
    launchers = set(_written_by_launcher(parent))
    found: dict[tuple[int, int], OutputFile] = {}
    for descriptor in descriptors:
        status = _look(request.pid, descriptor)
        if status is not None:
            key = (status.st_dev, status.st_ino)
            path = printable(os.readlink(_link(request.pid, descriptor)))  # noqa: PTH115 - bytes
            device, inode = key
            file = OutputFile(descriptor=descriptor, device=device, inode=inode, path=path, is_launchers=key in launchers)
            found.setdefault(key, file)
    _check_alive(request.pid, request.started_ticks)
    return OutputsListed(files=tuple(found.values()))


def read_output(request: OutputRequest) -> OpenedFile:
    """Reads the end of the file behind a descriptor, if it still is one that `list_outputs` gives.

    Raises:
        ParseError: if it is not.
        OSError: if the kernel says so.
    """
    with open_regular(_link(request.pid, request.descriptor), follow=True) as (handle, status):
        _check_alive(request.pid, request.started_ticks)
        if not _is_written(request.pid, request.descriptor, status.st_ino):
            raise ParseError("no longer a file that the process writes")
        return OpenedFile(data=read_tail(handle, status.st_size), mtime_ns=status.st_mtime_ns)


def _link(pid: int, descriptor: int) -> bytes:
    return b"/proc/%d/fd/%d" % (pid, descriptor)


def _check_alive(pid: int, started_ticks: int) -> int:
    """Returns the parent of a process.

    Raises:
        ProcessLookupError: if the number belongs to nobody, or to another process by now.
    """
    with contextlib.suppress(FileNotFoundError, ParseError):
        found = parse_stat(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace"))
        if found.started_ticks == started_ticks:
            return found.parent_pid
    raise ProcessLookupError(f"process {pid} has gone")


def _look(pid: int, descriptor: int) -> os.stat_result | None:
    """What is behind a descriptor, None unless it is a regular file that the process writes. Opens nothing."""
    try:
        status = os.stat(_link(pid, descriptor))  # noqa: PTH116 - bytes
    except FileNotFoundError:
        return None
    return status if stat.S_ISREG(status.st_mode) and _is_written(pid, descriptor, status.st_ino) else None


def _is_written(pid: int, descriptor: int, inode: int) -> bool:
    try:
        text = Path(f"/proc/{pid}/fdinfo/{descriptor}").read_text(encoding="ascii")
    except FileNotFoundError:
        return False
    fields = dict(line.partition(":")[::2] for line in text.splitlines())
    is_same = int(fields.get("ino", inode)) == inode  # older kernels do not tell
    return is_same and int(fields.get("flags", "0"), 8) & os.O_ACCMODE in {os.O_WRONLY, os.O_RDWR}


def _further(pid: int) -> Iterable[int]:
    """Descriptors beside the standard ones whose files are called like texts; their names are read, they are not."""
    found = []
    for name in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208 - only the names
        with contextlib.suppress(FileNotFoundError):
            target = os.readlink(_link(pid, int(name))).removesuffix(b" (deleted)")  # noqa: PTH115 - bytes
            if int(name) not in (0, *_STANDARD) and target[:1] == b"/" and _TEXT_NAME.search(os.path.basename(target)):  # noqa: PTH119
                found.append(int(name))
    return sorted(found)[:_MOST_FURTHER_FILES]


def _written_by_launcher(parent: int) -> Iterator[tuple[int, int]]:
    """Device and inode of what the next ancestor that is a program of its own has as output."""
    for _ in range(_MOST_ANCESTORS):
        try:
            if Path(f"/proc/{parent}/comm").read_text(encoding="utf-8", errors="replace").strip() not in _QUIET:
                break
            parent = parse_stat(Path(f"/proc/{parent}/stat").read_text(encoding="utf-8", errors="replace")).parent_pid
        except (OSError, ParseError):
            return
    for descriptor in _STANDARD:
        with contextlib.suppress(OSError):
            status = os.stat(_link(parent, descriptor))  # noqa: PTH116 - bytes
            yield status.st_dev, status.st_ino
