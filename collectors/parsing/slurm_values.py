"""Times, durations, exit codes and numbers as Slurm's commands write them. What says nothing becomes None."""

import re
from datetime import datetime, timezone

_DURATION = re.compile(r"(?:(?P<days>\d+)-)?(?:(?:(?P<hours>\d+):)?(?P<minutes>\d+):)?(?P<seconds>\d+)", re.ASCII)
_LATEST_S = 253402300799  # the last second of the year 9999
_ENDLESS = 0xFFFFFFFE  # Slurm's NO_VAL; INFINITE is one more
_DAY_S = 86400


def read_time(seconds: str | int | None) -> str | None:
    """RFC 3339 of seconds since 1970, which is what commands write with ``SLURM_TIME_FORMAT=%s``; 0 is "not yet"."""
    number = read_number(seconds) or 0
    if not 0 < number <= _LATEST_S:
        return None
    return datetime.fromtimestamp(number, tz=timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def read_duration(text: str) -> int | None:
    """Seconds of ``1-02:00:00``, ``00:10:00`` or ``10:00`` (minutes and seconds); None for ``UNLIMITED`` and its like."""
    match = _DURATION.fullmatch(text)
    if match is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.group("days", "hours", "minutes", "seconds"))
    if match["days"] and match["minutes"] is None:  # ``1-02``: days and hours
        hours, seconds = seconds, 0
    elif match["days"] and match["hours"] is None:  # ``1-02:30``: days, hours and minutes
        hours, minutes, seconds = minutes, seconds, 0
    return days * _DAY_S + hours * 3600 + minutes * 60 + seconds


def read_number(value: str | int | None) -> int | None:
    """A number that is neither missing nor one of Slurm's two words for "none"."""
    if isinstance(value, str):
        value = int(value) if value.isascii() and value.isdigit() and len(value) < 20 else None
    return value if value is not None and 0 <= value < _ENDLESS else None


def read_exit(text: str) -> tuple[int | None, int | None]:
    """Exit code and signal of ``3:0`` or ``0:15``."""
    code, _, signal = text.partition(":")
    return read_number(code), read_number(signal) or None


def read_wait_status(status: int | None) -> tuple[int | None, int | None]:
    """Exit code and signal of the number that ``wait`` gives."""
    if status is None:
        return None, None
    return status >> 8 & 0xFF, status & 0x7F or None


def read_text(value: str | None) -> str:
    """A text, empty for Slurm's words for "none"."""
    return "" if value is None or value in _NOTHING else value


_NOTHING = frozenset({"(null)", "N/A", "None", "None assigned", "none", "Unknown", "NONE"})
