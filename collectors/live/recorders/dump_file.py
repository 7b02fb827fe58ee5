"""Way 3: a dump that torch has written since the process started, on a timeout, on request, or by the job's own code.

Cost to the rank: none, its files are read and nothing else. Deadline: none of its own; a dead mount may keep the child that
reads them. Such a dump tells of the moment it was written at, which may be long before the hang: it is dated with its own time.
"""

import time
from collections.abc import Iterator

from pardbg.collectors.live.recorders.authorship import Author, find_author
from pardbg.collectors.live.recorders.outcome import Obtained, Outcome, Refusal
from pardbg.collectors.live.recorders.owner import home_folder, memory_map, working_folder
from pardbg.collectors.live.recorders.places import DumpPlace, dump_places, has_dynamic_names
from pardbg.collectors.live.recorders.request import Target
from pardbg.collectors.live.recorders.serial_parser import SerialParser
from pardbg.collectors.live.recorders.trusted_file import Look, RefusedError, look_at, read_file
from pardbg.collectors.live.start_time import started_ns
from pardbg.collectors.walking import printable
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.names import AbsenceReason

_CLOCK_SLACK_NS = 10**9  # a file server has its own clock
_SETTLING_NS = 2 * 10**9
_BETWEEN_LOOKS_S = 0.1


class FoundDump(Noun, frozen=True, kw_only=True):
    """A dump file that is there."""

    place: DumpPlace
    look: Look


def find_dumps(target: Target) -> Iterator[FoundDump | Refusal]:
    """The dump files of a rank, of any age, and what stands in their places."""
    if has_dynamic_names(target.environment):
        return
    for place in dump_places(target.environment, target.rank, working_folder(target), home_folder(target)):
        try:
            yield FoundDump(place=place, look=look_at(place.path, target.uid, root=target.root))
        except RefusedError as error:
            yield error.refusal
        except OSError:
            continue


def read_newest_dump(target: Target, parser: SerialParser, until_s: float) -> Outcome | None:
    """The newest dump that this process has written; None if there is none."""
    found = list(find_dumps(target))
    start_ns = started_ns(target.started_ticks) - _CLOCK_SLACK_NS
    fresh = [dump for dump in found if isinstance(dump, FoundDump) and dump.look.mtime_ns >= start_ns]
    refusal = next((item for item in found if isinstance(item, Refusal)), None)
    for dump in sorted(fresh, key=lambda dump: dump.look.mtime_ns, reverse=True):
        outcome = read_dump(target, dump.place, parser, until_s, must_be_signed=not dump.place.is_named)
        if isinstance(outcome, Obtained):
            return outcome
        refusal = refusal or outcome
    return refusal


def read_dump(target: Target, place: DumpPlace, parser: SerialParser, until_s: float, *, must_be_signed: bool) -> Outcome:
    """Reads one dump; one that is being written gets a moment to become whole.

    Args:
        target: the rank.
        place: the file.
        parser: reads its bytes.
        until_s: when to give up, on the monotonic clock.
        must_be_signed: whether a dump that does not show who wrote it is refused.
    """
    origin = printable(place.path)
    try:
        while True:
            data, look = read_file(place.path, target.uid, root=target.root)
            if refusal := _check_author(target, data, origin, must_be_signed=must_be_signed):
                return refusal
            outcome = _parse(data, look, parser, origin)
            is_whole = isinstance(outcome, Obtained) and not outcome.recording.damage
            is_settled = time.time_ns() - look.mtime_ns > _SETTLING_NS
            if is_whole or is_settled or time.monotonic() + _BETWEEN_LOOKS_S > until_s:
                return outcome
            time.sleep(_BETWEEN_LOOKS_S)
    except RefusedError as error:
        return error.refusal
    except OSError as error:
        return Refusal(reason=AbsenceReason.UNREADABLE, detail=error.strerror or str(error), origin=origin)


def _parse(data: bytes, look: Look, parser: SerialParser, origin: str) -> Outcome:
    if not data:
        detail = "the dump is empty: its writer was killed, or the disk was full"
        return Refusal(reason=AbsenceReason.EMPTY, detail=detail, origin=origin)
    try:
        recording = parser.parse(data)
    except ParseError as error:
        return Refusal(reason=AbsenceReason.UNREADABLE, detail=str(error), origin=origin)
    if not recording.is_switched_on:
        detail = "its dump is empty: the recorder is off, or nothing has been entered"
        return Refusal(reason=AbsenceReason.EMPTY, detail=detail, origin=origin)
    return Obtained(recording=recording, origin=origin, observed_ns=look.mtime_ns)


def _check_author(target: Target, data: bytes, origin: str, *, must_be_signed: bool) -> Refusal | None:
    author = find_author(data, memory_map(target))
    if author is Author.ANOTHER:
        detail = "the dump there was written by another process: another job uses the same name"
        return Refusal(reason=AbsenceReason.UNREACHABLE, detail=detail, origin=origin)
    if author is Author.UNKNOWN and must_be_signed and data:
        detail = "the dump there does not show which job wrote it, and all jobs of a user share that name"
        return Refusal(reason=AbsenceReason.UNREACHABLE, detail=detail, origin=origin)
    return None
