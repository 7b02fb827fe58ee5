"""When something was observed, as evidence has it: RFC 3339, UTC, to the millisecond: "2026-11-29T20:00:01.123Z"."""

import time
from datetime import datetime, timezone


def now_rfc3339() -> str:
    """The present."""
    return as_rfc3339(time.time_ns())


def as_rfc3339(epoch_ns: int) -> str:
    """A moment, epoch ns."""
    moment = datetime.fromtimestamp(epoch_ns / 1e9, tz=timezone.utc)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
