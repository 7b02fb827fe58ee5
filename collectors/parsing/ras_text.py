"""The answer of NCCL's RAS service as text (``ncclras``, ``ncclras -v``): a table of communicators, then what is odd. Pure.

The text names outliers only, and of counts that many members share their number; communicators without trouble it does not
name at all.
"""

import re
from dataclasses import dataclass, field

from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.members import MAX_WORLD_SIZE
from pardbg.watchdog.model.ras import RasCommunicator, RasCount, RasPlace, RasProcess, RasSeen
from pardbg.watchdog.model.text import printable_text

MOST_LINES = 200_000
_LONGEST_LINE = 500
_LONGEST_HEAD = 64 * 1024
_TABLE = "Communicators..."
_N = r"\d{1,9}"
_VERSION = re.compile(r"NCCL version (?P<version>\d[\w.+-]{0,30}) compiled with CUDA")
_ROW = re.compile(
    rf"\s+(?P<group>{_N})\s+{_N}\s+{_N}\s+{_N}(?:-{_N})?\s+(?P<size>{_N})\s+{_N}\s+[A-Z]{{4,12}}\s+[A-Z,]{{2,40}}\s*$"
)
_SECTION = re.compile(r"(?P<name>INCOMPLETE|DEAD|TIMEOUT)\s*$")
_COMMUNICATOR = re.compile(rf"#(?P<group>{_N})-{_N} \((?P<hash>[0-9a-fA-F]{{1,16}})\) (?P<trouble>INCOMPLETE|ERROR|MISMATCH)")
_DIFFERENT = re.compile(r"\s+Communicator ranks have different (?P<what>\w{1,32})(?P<counts> operation counts)?")
_MANY = re.compile(
    rf"\s+(?P<number>{_N}) (?:rank has|ranks have) (?:launched up to operation (?P<launched>\d{{1,19}})|not launched any)"
)
_PLACE = r"(?: -- GPU .{1,60}? managed by process (?P<pid>\d{1,9}) on node (?P<host>[\w.:%-]{1,64}))?"
_ONE = re.compile(
    rf"\s+Rank (?P<rank>{_N})"
    r"(?: has (?:launched up to operation (?P<launched>\d{1,19})|(?P<none>not launched any operations)))?"
    rf"(?P<other> (?:has status|reported) .{{1,40}}?)?{_PLACE}(?: -- \[|\s*$)"
)
_PROCESS = re.compile(r"\s+Process (?P<pid>\d{1,9}) on node (?P<host>[\w.:%-]{1,64}) managing")


def is_ras_text(head: str) -> bool:
    """Whether text begins as such an answer does."""
    return _VERSION.search(head[:4096]) is not None and "Job summary" in head and _TABLE in head


def find_ras_answer(text: str) -> RasSeen | None:
    """The newest answer in the middle of a log, as where both were written to one file; None without any."""
    at = text.rfind(_TABLE)
    start = text.rfind("NCCL version ", max(0, at - _LONGEST_HEAD), at) if at >= 0 else -1
    return parse_ras_text(text[start:]) if start >= 0 and is_ras_text(text[start : start + _LONGEST_HEAD]) else None


def parse_ras_text(text: str) -> RasSeen:
    """Reads such an answer, as far as it goes.

    Raises:
        ParseError: if it is none.
    """
    version = _VERSION.search(text[:4096])
    if version is None:
        raise ParseError("not an answer of NCCL's RAS", remedy="save what ncclras -v prints")
    reader = _Reader()
    for line in text.splitlines()[:MOST_LINES]:
        reader.read(line[:_LONGEST_LINE])
    return RasSeen(
        nccl=version["version"],
        communicators=tuple(draft.finish(reader.dead) for draft in reader.communicators.values()),
        processes=tuple(reader.processes.values()),
    )


@dataclass
class _Draft:
    """A communicator, as far as it was read."""

    hash: str
    size: int | None
    counts: dict[tuple[str, int], RasCount] = field(default_factory=dict)
    missing: list[RasPlace] = field(default_factory=list)
    failed: list[RasPlace] = field(default_factory=list)

    def finish(self, dead: set[tuple[str | None, int | None]]) -> RasCommunicator:
        """The communicator; those of its members are dead whose processes are."""
        return RasCommunicator(
            hash=self.hash,
            size=self.size,
            counts=tuple(sorted(self.counts.values(), key=lambda count: (count.op, -count.launched))),
            missing=tuple(self.missing),
            dead=tuple(place for place in self.missing if (place.host, place.pid) in dead),
            failed=tuple(self.failed),
        )


class _Reader:
    """What was read so far, and what the next line speaks of."""

    def __init__(self) -> None:
        self.communicators: dict[str, _Draft] = {}
        self.processes: dict[tuple[str, int], RasProcess] = {}
        self._sizes: dict[int, int] = {}
        self._section = ""
        self._draft: _Draft | None = None
        self._op = ""
        self._last: tuple[str, int] | None = None

    @property
    def dead(self) -> set[tuple[str | None, int | None]]:
        """Where the processes are that are held for dead."""
        return {key for key, process in self.processes.items() if process.is_dead}

    def read(self, line: str) -> None:
        """Takes one line."""
        if row := _ROW.match(line):
            self._sizes[int(row["group"])] = int(row["size"])
        elif section := _SECTION.match(line):
            self._section, self._draft = section["name"], None
        elif named := _COMMUNICATOR.match(line):
            self._begin(named)
        elif process := _PROCESS.match(line):
            found = RasProcess(host=process["host"], pid=int(process["pid"]), is_dead=self._section == "DEAD")
            self.processes[found.host, found.pid] = found
        elif self._draft is not None:
            self._read_member(self._draft, line)

    def _begin(self, named: re.Match[str]) -> None:
        size = self._sizes.get(int(named["group"]))
        key = named["hash"].lower().zfill(16)
        sane = size if size is not None and 0 < size <= MAX_WORLD_SIZE else None
        self._draft = self.communicators.setdefault(key, _Draft(key, sane))
        self._section, self._op, self._last = named["trouble"], "", None

    def _read_member(self, draft: _Draft, line: str) -> None:
        if different := _DIFFERENT.match(line):
            self._op, self._last = printable_text(different["what"]) if different["counts"] else "", None
        elif (many := _MANY.match(line)) and self._op:
            self._last = self._op, int(many["launched"] or 0)
            draft.counts[self._last] = RasCount(op=self._op, launched=self._last[1], number=int(many["number"]))
        elif (one := _ONE.match(line)) and int(one["rank"]) < MAX_WORLD_SIZE:
            self._read_one(draft, one)

    def _read_one(self, draft: _Draft, one: re.Match[str]) -> None:
        member, pid = int(one["rank"]), int(one["pid"]) if one["pid"] else None
        place = RasPlace(member=member, host=one["host"], pid=pid)
        if one["launched"] or one["none"]:
            launched = int(one["launched"] or 0)
            if self._op:
                draft.counts[self._op, launched] = RasCount(op=self._op, launched=launched, number=1, members=(member,))
        elif self._section == "INCOMPLETE":
            draft.missing.append(place)
        elif self._section == "ERROR":
            draft.failed.append(place)
        elif self._last is not None and not one["other"]:
            known = draft.counts[self._last]
            draft.counts[self._last] = RasCount(
                op=known.op, launched=known.launched, number=known.number, members=(*known.members, member)
            )
