"""When something was observed."""

from datetime import datetime, timezone


def now_rfc3339() -> str:
    """The present, UTC, to the millisecond: "2026-11-29T20:00:01.123Z"."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
