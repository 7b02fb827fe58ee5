"""Reads the last files of a rank that has ended. Runs in a reader's child, which may be abandoned.

All of it belongs to the job's user and may be a trap: regular files of that user only, none larger than what a probe writes.
Cost: a few system calls, and the parsing of one dump (0.2 s for 20,000 operations). Leaves nothing behind.
"""

import os
import re
from pathlib import Path

from pardbg.collectors.ended.requests import LastRead, LastRequest, SignalStacks
from pardbg.collectors.live.recorders.outcome import Obtained, Outcome, Refusal
from pardbg.collectors.live.recorders.serial_parser import SerialParser
from pardbg.collectors.live.recorders.trusted_file import RefusedError, look_at, read_file
from pardbg.collectors.parsing.routing_page import read_routing
from pardbg.collectors.parsing.stacks import parse_stacks
from pardbg.collectors.probe.places import ENDED_STACKS, FATAL_STACKS, INTERRUPTED_STACKS, ROUTING_FILE
from pardbg.collectors.procfs.memory_group import parse_oom_kills
from pardbg.collectors.walking import printable
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.evidence import Stack
from pardbg.watchdog.model.names import AbsenceReason
from pardbg.watchdog.model.routing import RoutingSeries

MOST_TEXT_BYTES = 4 * 1024**2  # faulthandler writes at most 100 threads of 100 frames, once a signal
MOST_ROUTING_BYTES, MOST_ROUTING_COUNTS = 64 * 1024**2, 2**18  # a probe's file has some megabytes
_CLOCK_SLACK_NS = 10**9  # a file server has its own clock
_CGROUPS = Path("/sys/fs/cgroup")
_FATAL = re.compile(r"^Fatal Python error: (?P<what>[^\n]{1,200})", re.MULTILINE)
_CODES = {
    "Segmentation fault": -11,
    "Aborted": -6,
    "Bus error": -7,
    "Floating-point exception": -8,
    "Floating point exception": -8,
    "Illegal instruction": -4,
}
_ABORTED = -6  # what Python does after any other fatal error
_TERMINATED, _INTERRUPTED = -15, -2


def read_last(request: LastRequest) -> LastRead:
    """Everything of one rank."""
    fatal, terminated = _text(request, FATAL_STACKS), _text(request, ENDED_STACKS)
    interrupted = _text(request, INTERRUPTED_STACKS)
    return LastRead(
        dump=_read_newest(request),
        fatal=_fatal(*fatal) if fatal else None,
        terminated=_ended(_TERMINATED, *terminated) if terminated else None,
        interrupted=_ended(_INTERRUPTED, *interrupted) if interrupted else None,
        oom_kills=_count_oom_kills(request.cgroup),
        routing=_read_routing(request),
    )


def _read_routing(request: LastRequest) -> RoutingSeries | None:
    """The newest steps that its probe has counted; nobody writes the file any more, so a torn part stays torn."""
    path = os.path.join(request.folder, os.fsencode(ROUTING_FILE))  # noqa: PTH118 - bytes
    try:
        data, _ = read_file(path, request.uid, most_bytes=MOST_ROUTING_BYTES)
        return read_routing(lambda offset, size: data[offset : offset + size], most_counts=MOST_ROUTING_COUNTS)
    except (RefusedError, ParseError, OSError):
        return None


def _text(request: LastRequest, name: str) -> tuple[str, int, str] | None:
    """Content, time and name of a file; None if it is empty, or not to be had."""
    path = os.path.join(request.folder, os.fsencode(name))  # noqa: PTH118 - bytes
    try:
        data, look = read_file(path, request.uid, most_bytes=MOST_TEXT_BYTES)
    except (RefusedError, OSError):
        return None
    return (data.decode(errors="replace"), look.mtime_ns, printable(path)) if data.strip() else None


def _fatal(text: str, at_ns: int, origin: str) -> SignalStacks | None:
    found = list(_FATAL.finditer(text))
    if not found:
        return None
    code = _CODES.get(found[-1]["what"].strip(), _ABORTED)
    return SignalStacks(code=code, at_ns=at_ns, stack=_stack(text[found[-1].start() :]), origin=origin)


def _ended(code: int, text: str, at_ns: int, origin: str) -> SignalStacks:
    return SignalStacks(code=code, at_ns=at_ns, stack=_stack(_last_picture(text)), origin=origin)


def _last_picture(text: str) -> str:
    """Of several dumps the last: the current thread is listed once in each, in the place of its age; ids repeat."""
    seen: set[str] = set()
    start = position = 0
    for line in text.splitlines(keepends=True):
        if line.rstrip().endswith("(most recent call first):"):
            identity = line.partition("0x")[2].partition(" ")[0]
            if identity in seen:
                start, seen = position, set()
            seen.add(identity)
        position += len(line)
    return text[start:]


def _stack(text: str) -> Stack | None:
    try:
        return parse_stacks(text.encode(errors="replace"))
    except ParseError:
        return None


def _read_newest(request: LastRequest) -> Outcome | None:
    """The newest dump of this process; else why none of them could be used."""
    refusal: Refusal | None = None
    times: dict[bytes, int] = {}
    for path in map(os.fsencode, request.dumps):
        try:
            times[path] = look_at(path, request.uid).mtime_ns
        except RefusedError as error:
            refusal = error.refusal
        except OSError:
            continue
    fresh = [path for path, time_ns in times.items() if time_ns >= request.since_ns - _CLOCK_SLACK_NS]
    parser = SerialParser()
    for path in sorted(fresh, key=lambda path: times[path], reverse=True):
        outcome = _read_dump(path, request.uid, parser)
        if isinstance(outcome, Obtained):
            return outcome
        refusal = refusal or outcome
    return refusal


def _read_dump(path: bytes, uid: int, parser: SerialParser) -> Outcome:
    origin = printable(path)
    try:
        data, look = read_file(path, uid)
        recording = parser.parse(data)
    except RefusedError as error:
        return error.refusal
    except ParseError as error:
        return Refusal(reason=AbsenceReason.UNREADABLE, detail=str(error), origin=origin)
    except OSError as error:
        return Refusal(reason=AbsenceReason.UNREADABLE, detail=error.strerror or "cannot be read", origin=origin)
    if not recording.is_switched_on:
        return Refusal(reason=AbsenceReason.EMPTY, detail="its last dump holds no operation", origin=origin)
    return Obtained(recording=recording, origin=origin, observed_ns=look.mtime_ns)


def _count_oom_kills(cgroup: str | None) -> int | None:
    """What the cgroup counts now. Only a folder of the kernel's own cgroups is looked into; it may be gone."""
    if cgroup is None:
        return None
    folder = Path(os.path.realpath(cgroup))
    if not folder.is_relative_to(_CGROUPS):
        return None
    for name in ("memory.events", "memory.oom_control"):
        try:
            return parse_oom_kills((folder / name).read_text(encoding="utf-8", errors="replace"))
        except OSError:
            continue
    return None
