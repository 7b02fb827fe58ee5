"""When a line of a kernel log was written: ``dmesg`` with seconds or dates, journals, and records of ``/dev/kmsg``. Pure.

Dates without a zone are taken as UTC, which is what nodes of clusters run on.
"""

import re
from collections.abc import Callable
from datetime import datetime, timedelta, timezone

from pardbg.watchdog.model.kernel import Moment

NS_PER_S = 1_000_000_000
YEARLESS = 1972  # a leap year, long before any log
_MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec"
_MONTH = f"(?P<month>{'|'.join(_MONTHS.split())})"
_CLOCK = r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)"
_LEVEL = r"\s{0,8}(?:<\d{1,4}>|\w{1,10} {0,3}:\w{1,10} {0,4}: ?)?"
_RECORD = re.compile(r"\d{1,4},\d{1,20},(?P<micros>\d{1,20}),[^;]{0,200};")
_SINCE_BOOT = re.compile(_LEVEL + r"\[\s{0,12}(?P<up>\d{1,12}\.\d{1,9})\](?:\[[\sTC\d]{1,12}\])?\s?(?:[\w.-]{1,255} kernel: )?")
_DATED = re.compile(_LEVEL + rf"\[\w{{3}} {_MONTH} +(?P<day>\d{{1,2}}) {_CLOCK}(?:\.\d{{1,9}})? (?P<year>\d{{4}})\]\s?")
_ISO = re.compile(
    _LEVEL
    + r"\[?(?P<iso>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)(?:[.,](?P<fraction>\d{1,9}))?(?P<zone>Z|[+-]\d\d:?\d\d)?\]? "
    + r"(?:[\w.-]{1,255} kernel: )?(?:\[\s{0,12}(?P<up>\d{1,12}\.\d{1,9})\] )?"
)
_SYSLOG = re.compile(
    rf"{_MONTH} +(?P<day>\d{{1,2}}) {_CLOCK}(?:\.\d{{1,9}})? [\w.-]{{1,255}} kernel: "
    r"(?:\[\s{0,12}(?P<up>\d{1,12}\.\d{1,9})\] )?"
)
_BARE = re.compile(r"kernel: (?=NVRM: )")  # cut out of a journal without its times


def read_moment(line: str) -> tuple[Moment, str] | None:
    """The moment of a line, and what stands behind it; None if it does not begin as a line of a kernel log does."""
    for pattern, read in _FORMS:
        match = pattern.match(line)
        if match is not None:
            return read(match), line[match.end() :]
    return None


def place_in_year(moment: Moment, written_ns: int | None) -> Moment:
    """Of a moment without a year the last such day before the log was written (epoch ns)."""
    if moment.has_year or moment.at_ns is None:
        return moment
    if written_ns is None:
        return Moment(up_s=moment.up_s)
    try:
        limit = datetime.fromtimestamp(written_ns / NS_PER_S, tz=timezone.utc) + timedelta(days=1)
        day = datetime.fromtimestamp(moment.at_ns / NS_PER_S, tz=timezone.utc)
        dated = day.replace(year=limit.year)
        placed = dated if dated <= limit else day.replace(year=limit.year - 1)
    except (ValueError, OverflowError, OSError):  # the 29th of February, or a time that no file has
        return Moment(up_s=moment.up_s)
    return Moment(at_ns=_epoch_ns(placed), up_s=moment.up_s)


def _since_boot(match: re.Match[str]) -> Moment:
    return Moment(up_s=float(match["up"]))


def _of_record(match: re.Match[str]) -> Moment:
    return Moment(up_s=int(match["micros"]) / 1e6)


def _of_date(match: re.Match[str]) -> Moment:
    return _moment(int(match["year"]), match, None)


def _of_syslog(match: re.Match[str]) -> Moment:
    return _moment(YEARLESS, match, match["up"])


def _moment(year: int, match: re.Match[str], up: str | None) -> Moment:
    month = _MONTHS.split().index(match["month"]) + 1
    clock = (int(match["hour"]), int(match["minute"]), int(match["second"]))
    up_s = None if up is None else float(up)
    try:
        at = datetime(year, month, int(match["day"]), *clock, tzinfo=timezone.utc)
    except ValueError:
        return Moment(up_s=up_s)
    return Moment(at_ns=_epoch_ns(at), up_s=up_s, has_year=year != YEARLESS)


def _of_iso(match: re.Match[str]) -> Moment:
    up_s = None if match["up"] is None else float(match["up"])
    zone = (match["zone"] or "Z").replace("Z", "+0000").replace(":", "")
    try:
        at = datetime.strptime(match["iso"].replace(" ", "T") + zone, "%Y-%m-%dT%H:%M:%S%z")
    except ValueError:
        return Moment(up_s=up_s)
    return Moment(at_ns=_epoch_ns(at) + int((match["fraction"] or "0").ljust(9, "0")), up_s=up_s)


def _epoch_ns(at: datetime) -> int:
    return int((at - datetime(1970, 1, 1, tzinfo=timezone.utc)).total_seconds()) * NS_PER_S


_FORMS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Moment]], ...] = (
    (_RECORD, _of_record),
    (_SINCE_BOOT, _since_boot),
    (_DATED, _of_date),
    (_ISO, _of_iso),
    (_SYSLOG, _of_syslog),
    (_BARE, lambda _: Moment()),
)
