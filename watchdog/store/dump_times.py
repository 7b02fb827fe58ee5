"""When each rank's newest dump was taken: by the clock of who read it from a process that lives, else by its file's time.

A file that was copied is younger than the dump in it, never older. A time before the newest moment that the dump itself holds
is of another clock, and says nothing.
"""

from collections.abc import Iterable, Mapping

from pardbg.watchdog.model.evidence import Evidence, FlightRecording
from pardbg.watchdog.model.moments import parse_rfc3339
from pardbg.watchdog.model.recording import Recording

_NS_PER_S = 1_000_000_000
_LAST_OPERATIONS = 64  # rings are in the order of issue: the newest moment is among the last


def dump_times_ns(evidence: Iterable[Evidence], recordings: Mapping[int, Recording]) -> dict[int, int]:
    """The latest moment at which each of these recordings can have been taken, epoch ns, where anything credible tells."""
    found: dict[int, int] = {}
    for item in evidence:
        seen = item.observation
        if not isinstance(seen, FlightRecording) or item.rank is None or seen.recording is not recordings.get(item.rank):
            continue
        taken_ns = _latest_ns(item.observed_at)
        if taken_ns is not None and taken_ns >= _newest_moment_ns(seen.recording):
            found[item.rank] = taken_ns
    return found


def _latest_ns(text: str | None) -> int | None:
    """A time without a fraction was cut off, as those of files are: it means the end of that second."""
    if text is None:
        return None
    try:
        moment = parse_rfc3339(text)
    except ValueError:
        return None
    return int(moment.timestamp() * _NS_PER_S) + (0 if "." in text else _NS_PER_S)


def _newest_moment_ns(recording: Recording) -> int:
    last = recording.operations[-_LAST_OPERATIONS:]
    return max((max(operation.created_ns, operation.completed_ns) for operation in last), default=0)
