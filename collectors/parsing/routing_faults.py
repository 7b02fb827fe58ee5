"""What of a file of routing counts could not be used, in sentences that name the field and the line. Memory: a note a field."""

from collections.abc import Iterator
from dataclasses import dataclass

from pardbg.watchdog.model.evidence import Absence
from pardbg.watchdog.model.names import AbsenceReason

NEWEST_LINES = 50
"""Where most of the last so many lines cannot be used, nothing is known of how it is now."""
MOST_FIELDS = 4


@dataclass
class _Seen:
    """In how many lines, and in the first of them, which begins at this byte, how."""

    count: int
    begins: int
    fault: str


class Faults:
    """Fed with the lines of a file, the last one first.

    Attributes:
        lines: lines that were fed.
    """

    def __init__(self) -> None:
        self.lines = 0
        self._unusable: _Seen | None = None
        self._values: dict[str, _Seen] = {}
        self._newest_unusable = 0

    def add(self, begins: int, faults: tuple[str, ...], *, is_used: bool) -> None:
        """Takes the next line up the file, where it begins, and what is wrong with it."""
        self.lines += 1
        if not is_used:
            self._newest_unusable += self.lines <= NEWEST_LINES
            self.leave_out(begins, faults[0])
            return
        for fault in faults:
            field = fault.partition(" ")[0]
            before = self._values.get(field)
            self._values[field] = _Seen(before.count + 1 if before is not None else 1, begins, fault)

    def leave_out(self, begins: int, fault: str) -> None:
        """A line that was fed cannot be used after all."""
        before = self._unusable
        if before is None or begins < before.begins:
            self._unusable = _Seen(before.count + 1 if before is not None else 1, begins, fault)
        else:
            before.count += 1

    def first(self, data: bytes) -> str:
        """The first line that cannot be used: ``line 3: counts is missing``; empty where there is none."""
        return f"line {_number(data, self._unusable)}: {self._unusable.fault}" if self._unusable is not None else ""

    def told(self, data: bytes) -> Iterator[Absence]:
        """Lines that were left out (`AbsenceReason.LOST` if they are most of all, or of the newest), then single values."""
        if self._unusable is not None:
            count, newest = self._unusable.count, min(NEWEST_LINES, self.lines)
            is_most, is_newest = 2 * count > self.lines, 2 * self._newest_unusable > newest
            where = f", most of the newest {newest} among them" if is_newest and not is_most else ""
            yield Absence(
                reason=AbsenceReason.LOST if is_most or is_newest else AbsenceReason.UNREADABLE,
                detail=f"{count} of {self.lines} lines cannot be used and were left out{where}; {self.first(data)}",
            )
        fields = sorted(self._values.items())
        for field, seen in fields[:MOST_FIELDS]:
            told = f"{field} was left out in {seen.count} of {self.lines} lines; line {_number(data, seen)}: {seen.fault}"
            yield Absence(reason=AbsenceReason.SKIPPED, detail=told)
        if fields[MOST_FIELDS:]:
            more = ", ".join(field for field, _ in fields[MOST_FIELDS:])
            yield Absence(reason=AbsenceReason.SKIPPED, detail=f"so were, in some lines: {more}")


def _number(data: bytes, seen: _Seen) -> int:
    return data.count(b"\n", 0, seen.begins) + 1
