"""A rank's page: the bytes that its probe keeps up to date (`collectors/probe/page_format.py`) -> a `Heartbeat`.

A record that was being written while the page was copied is looked for in the next copy. The last exception is text of the
program: what looks like a secret is taken out of it here.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

from msgspec.structs import replace

from pardbg.collectors.parsing.consequences import Standing, judge_exception
from pardbg.collectors.parsing.replica_record import read_replica
from pardbg.collectors.probe.page_format import (
    END_AT_ONCE,
    END_EXCEPTION,
    END_RETURNED,
    EndingRecord,
    MemoryRecord,
    NotAPageError,
    PhaseRecord,
    ReplicaRecord,
    StepRecord,
    TornError,
    decode_header,
    decode_record,
)
from pardbg.collectors.probe.secrets import hide_secrets
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.heartbeat import Ending, EndingKind, Heartbeat
from pardbg.watchdog.model.text import printable_text

MOST_COPIES = 5
_NS_PER_S = 1e9
_LATEST_NS = 2**63
_LONGEST_EXCEPTION = 500
_ENDINGS = {END_RETURNED: EndingKind.RETURNED, END_AT_ONCE: EndingKind.AT_ONCE, END_EXCEPTION: EndingKind.EXCEPTION}

_Kind = TypeVar("_Kind", StepRecord, PhaseRecord, MemoryRecord, EndingRecord, ReplicaRecord)


def parse_page(copies: Iterable[bytes], pid: int | None = None) -> Heartbeat:
    """Reads a page.

    Args:
        copies: the page as it was at one moment after the other; asked for another one only while a record is torn.
        pid: whose page it must be, None for anybody's.

    Raises:
        ParseError: if it is none, is another process's, or a record of it was torn in each of `MOST_COPIES` copies.
    """
    copying = _Copying(copies)
    signs = _read_signs(copying, pid)
    replica = copying.find(ReplicaRecord)
    return replace(signs, replica=read_replica(replica.body)) if replica else signs


def parse_signs(copies: Iterable[bytes], pid: int | None = None) -> Heartbeat:
    """The same without the replica, which takes three times as long: for who looks each second.

    Raises:
        ParseError: as above.
    """
    return _read_signs(_Copying(copies), pid)


def _read_signs(copying: "_Copying", pid: int | None) -> Heartbeat:
    owner = _read_owner(copying.page)
    if pid is not None and owner != pid:
        raise ParseError(f"the page of process {owner}, not of {pid}")
    step, phase = copying.find(StepRecord), copying.find(PhaseRecord)
    memory, ending = copying.find(MemoryRecord), copying.find(EndingRecord)
    return Heartbeat(
        step=step.step if step else None,
        step_ended_ns=_moment(step.ended_ns) if step else None,
        step_s=_seconds(step.last_ns) if step else None,
        longest_step_s=_seconds(step.longest_ns) if step else None,
        own_s=step.own_ns / _NS_PER_S if step else None,
        hook_count=step.hook_count if step else None,
        phase=_text(phase.name) if phase else "",
        phase_since_ns=_moment(phase.since_ns) if phase and phase.name else None,
        allocated_bytes=memory.allocated_bytes if memory else None,
        reserved_bytes=memory.reserved_bytes if memory else None,
        retry_count=memory.retry_count if memory else None,
        ending=_read_ending(ending) if ending else None,
    )


class _Copying:
    """The newest copy of the page, and the way to the next one."""

    def __init__(self, copies: Iterable[bytes]) -> None:
        self._more: Iterator[bytes] = islice(iter(copies), MOST_COPIES)
        self.page = next(self._more, b"")

    def find(self, kind: type[_Kind]) -> _Kind | None:
        """A record that is whole, None if it was never written."""
        while True:
            try:
                found = decode_record(kind, self.page)
            except TornError as error:
                page = next(self._more, None)
                if page is None:
                    raise ParseError("a record of the page is torn: it was being written all the time") from error
                _read_owner(page)
                self.page = page
            else:
                return found if isinstance(found, kind) else None


def _read_owner(page: bytes) -> int:
    try:
        return decode_header(page)[0]
    except NotAPageError as error:
        raise ParseError("not a page of a probe that is known here") from error


def _read_ending(record: EndingRecord) -> Ending | None:
    kind = _ENDINGS.get(record.kind)
    if kind is None:
        return None
    words = record.text.decode(errors="replace")
    where = _text(record.where)
    standing = judge_exception(words, where)
    return Ending(
        kind=kind,
        at_ns=_moment(record.at_ns),
        code=None if record.code == -1 else record.code,
        text=printable_text(hide_secrets(words.split("\n", 1)[0])[:_LONGEST_EXCEPTION]),
        where=where,
        is_consequence=standing is Standing.PEER_LOST,
        is_doubtful=standing is Standing.UNSURE,
        oom_kills=None if record.oom_kills < 0 else record.oom_kills,
    )


def _moment(epoch_ns: int) -> int | None:
    return epoch_ns if 0 < epoch_ns < _LATEST_NS else None


def _seconds(duration_ns: int) -> float | None:
    return duration_ns / _NS_PER_S if 0 < duration_ns < _LATEST_NS else None


def _text(raw: bytes) -> str:
    return printable_text(raw.decode(errors="replace"))
