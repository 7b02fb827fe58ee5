"""Way 2: asking NCCL's monitor thread for a dump, through the FIFO that ``TORCH_NCCL_DEBUG_INFO_PIPE_FILE`` makes it watch.

Cost to the rank: torch looks at the FIFO once a second and writes the dump in a thread of its own, over its previous one. This
dump always holds stacks, for which that thread takes the GIL: where it is held for ever no dump comes, and the thread waits as
long; the first dump of a process imports `torch._inductor` (1 to 3 s, measured on a CPU), later ones take 16 to 46 ms.
Deadline: the scan's. It leaves the dump file. Training goes on: this is torch's own way to ask for a dump.

Only a FIFO of the job's user that this very process has open is written to, and never that of a stopped process.
"""

import errno
import os
import stat
import time

from pardbg.collectors.live.recorders.dump_file import FoundDump, find_dumps, read_dump
from pardbg.collectors.live.recorders.outcome import Obtained, Outcome, Refusal
from pardbg.collectors.live.recorders.owner import home_folder, working_folder
from pardbg.collectors.live.recorders.places import DumpPlace, dump_places, has_dynamic_names, pipe_path
from pardbg.collectors.live.recorders.request import Target
from pardbg.collectors.live.recorders.serial_parser import SerialParser
from pardbg.collectors.live.recorders.trusted_file import Look, RefusedError, look_at, looked_up
from pardbg.collectors.walking import printable
from pardbg.watchdog.model.names import AbsenceReason

_WRITTEN = b"1\n"
_BETWEEN_LOOKS_S = 0.05
_DUMP_ON_TIMEOUT = "TORCH_NCCL_DUMP_ON_TIMEOUT"


def ask_through_pipe(target: Target, parser: SerialParser, began_ns: int, until_s: float) -> Outcome | None:
    """Asks for a dump and waits until it is whole; None if the rank watches no FIFO, or has just written a dump anyway."""
    path = pipe_path(target.environment, target.rank, working_folder(target))
    if path is None:
        return None
    origin = printable(path)
    if not target.is_at_home:
        detail = "its dump pipe lies in another mount namespace, where nothing is written to: run pardbg in its container"
        return Refusal(reason=AbsenceReason.UNREACHABLE, detail=detail, origin=origin)
    if has_dynamic_names(target.environment):
        detail = "the job's code names its dumps anew each time (TORCH_FR_DUMP_DYNAMIC_FILE_NAME): not asked for one"
        return Refusal(reason=AbsenceReason.UNSUPPORTED, detail=detail, origin=origin)
    if target.environment.get(_DUMP_ON_TIMEOUT) == b"0":
        detail = f"with {_DUMP_ON_TIMEOUT}=0 torch looks at its dump pipe every few minutes only: not asked"
        return Refusal(reason=AbsenceReason.UNREACHABLE, detail=detail, origin=origin)
    before = _present_dumps(target)
    if any(look.mtime_ns >= began_ns for look in before.values()):
        return None
    refusal = _write(target, path)
    return refusal or _wait(target, parser, before, origin, until_s)


def _present_dumps(target: Target) -> dict[bytes, Look]:
    return {found.place.path: found.look for found in find_dumps(target) if isinstance(found, FoundDump)}


def _write(target: Target, path: bytes) -> Refusal | None:
    origin = printable(path)
    try:
        with looked_up(path, target.uid, stat.S_IFIFO) as (descriptor, status):
            if not _has_open(target.pid, status, os.readlink(b"/proc/self/fd/%d" % descriptor)):  # noqa: PTH115
                detail = "nobody reads its dump pipe: its NCCL group is not there yet, or another job took the name"
                return Refusal(reason=AbsenceReason.UNREACHABLE, detail=detail, origin=origin)
            pipe = os.open(f"/proc/self/fd/{descriptor}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                os.write(pipe, _WRITTEN)
            finally:
                os.close(pipe)
    except RefusedError as error:
        return error.refusal
    except FileNotFoundError:
        detail = "its dump pipe is not there: it has no NCCL group yet, or its recorder is off"
        return Refusal(reason=AbsenceReason.UNREACHABLE, detail=detail, origin=origin)
    except PermissionError:
        return Refusal(
            reason=AbsenceReason.DENIED, detail="its dump pipe may not be written to: run pardbg as root", origin=origin
        )
    except OSError as error:
        if error.errno != errno.EAGAIN:  # full: a dump has been asked for already
            detail = f"its dump pipe cannot be written to: {error.strerror}"
            return Refusal(reason=AbsenceReason.UNREACHABLE, detail=detail, origin=origin)
    return None


def _has_open(pid: int, status: os.stat_result, name: bytes) -> bool:
    """Whether the process has this FIFO open. Its descriptors are compared by name first: a `stat` may hang on a dead mount."""
    folder = b"/proc/%d/fd" % pid
    try:
        for number in os.listdir(folder):  # noqa: PTH208 - bytes
            entry = os.path.join(folder, number)  # noqa: PTH118
            try:
                if os.readlink(entry) == name and os.path.samestat(os.stat(entry), status):  # noqa: PTH115, PTH116
                    return True
            except FileNotFoundError:
                continue
    except FileNotFoundError:
        return False
    return False


def _wait(target: Target, parser: SerialParser, before: dict[bytes, Look], origin: str, until_s: float) -> Outcome:
    """Waits for a dump that was not there before, whole and no longer growing."""
    places = dump_places(target.environment, target.rank, working_folder(target), home_folder(target))
    last: dict[bytes, Look] = {}
    while time.monotonic() + _BETWEEN_LOOKS_S < until_s:
        time.sleep(_BETWEEN_LOOKS_S)
        for place in places:
            look = _look(place, target.uid)
            if look is None or look == before.get(place.path):
                continue
            if look.size_bytes and look == last.get(place.path):
                outcome = read_dump(target, place, parser, 0.0, must_be_signed=False)
                if not isinstance(outcome, Obtained) or not outcome.recording.damage:
                    return outcome
            last[place.path] = look
    detail = "it was asked for a dump through its pipe and has written none in time: the GIL is held, or its monitor is gone"
    return Refusal(reason=AbsenceReason.TIMED_OUT, detail=detail, origin=origin)


def _look(place: DumpPlace, uid: int) -> Look | None:
    try:
        return look_at(place.path, uid)
    except (RefusedError, OSError):
        return None
