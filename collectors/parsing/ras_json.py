"""The answer of NCCL's RAS service as JSON (``ncclras -f json``): one object, with every member's counts. Pure.

Tolerant: keys that are missing or of another type cost what they describe, not the rest.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.members import MAX_WORLD_SIZE
from pardbg.watchdog.model.ras import RasCommunicator, RasCount, RasPlace, RasProcess, RasSeen
from pardbg.watchdog.model.text import printable_text

MOST_COMMUNICATORS = 4096
_FINE = frozenset({0, 7})  # ncclSuccess, ncclInProgress
_HASH = re.compile(r"(?:0x)?[0-9a-fA-F]{1,16}")


class _Status(msgspec.Struct):
    init_state: int = 0
    async_error: int = 0
    considered_dead: bool = False


class _Member(msgspec.Struct):
    rank: int
    host: str | None = None
    pid: int | None = None
    status: _Status = msgspec.field(default_factory=_Status)
    collective_counts: dict[str, int] = {}


class _Communicator(msgspec.Struct):
    hash: str
    size: int | None = None
    ranks: list[Any] = []
    missing_ranks: list[Any] = []


class _Answer(msgspec.Struct):
    communicators: list[Any]
    nccl_version: str | None = None


def parse_ras_json(data: bytes) -> RasSeen:
    """Reads such an answer; what stands before its first brace, as a server's greeting does, is left out.

    Raises:
        ParseError: if it is none.
    """
    try:
        answer = msgspec.json.decode(data[max(data.find(b"{"), 0) :], type=_Answer)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ParseError(f"not an answer of NCCL's RAS: {error}", remedy="ask again: ncclras -v") from error
    kept = list(_converted(answer.communicators[:MOST_COMMUNICATORS], _Communicator))
    gone = [member for item in kept for member in _members(item.missing_ranks) if member.host and member.pid is not None]
    processes = {(member.host or "", member.pid or 0): member.status.considered_dead for member in gone}
    return RasSeen(
        nccl=printable_text(answer.nccl_version) if answer.nccl_version else None,
        communicators=tuple(map(_describe, kept)),
        processes=tuple(
            RasProcess(host=printable_text(host), pid=pid, is_dead=is_dead)
            for (host, pid), is_dead in sorted(processes.items())
        ),
    )


def _describe(item: _Communicator) -> RasCommunicator:
    members, missing = list(_members(item.ranks)), list(_members(item.missing_ranks))
    failed = (member for member in members if {member.status.init_state, member.status.async_error} - _FINE)
    found = _HASH.fullmatch(item.hash)
    return RasCommunicator(
        hash=item.hash.lower().removeprefix("0x").zfill(16) if found else "",
        size=item.size if item.size is not None and 0 < item.size <= MAX_WORLD_SIZE else None,
        counts=tuple(_count(members)),
        missing=tuple(map(_place, missing)),
        dead=tuple(_place(member) for member in missing if member.status.considered_dead),
        failed=tuple(map(_place, failed)),
    )


def _count(members: list[_Member]) -> Iterator[RasCount]:
    """The members by how many operations of each kind they have launched, the most first; of kinds that somebody used."""
    for op in sorted({op for member in members for op in member.collective_counts}):
        by_count: dict[int, list[int]] = {}
        for member in members:
            by_count.setdefault(member.collective_counts.get(op, 0), []).append(member.rank)
        if by_count.keys() - {0}:
            for launched, ranks in sorted(by_count.items(), reverse=True):
                yield RasCount(op=printable_text(op), launched=launched, number=len(ranks), members=tuple(sorted(ranks)))


def _members(raw: list[Any]) -> Iterable[_Member]:
    return (member for member in _converted(raw[:MAX_WORLD_SIZE], _Member) if 0 <= member.rank < MAX_WORLD_SIZE)


def _converted(raw: Iterable[Any], kind: type[Any]) -> Iterator[Any]:
    for item in raw:
        try:
            yield msgspec.convert(item, kind)
        except msgspec.ValidationError:
            continue


def _place(member: _Member) -> RasPlace:
    host = printable_text(member.host) if member.host else None
    return RasPlace(member=member.rank, host=host, pid=member.pid if (member.pid or -1) > 0 else None)
