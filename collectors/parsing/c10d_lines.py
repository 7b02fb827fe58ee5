"""Lines of torch's distributed layer: watchdogs of all generations, stores, monitored barriers, detail mode.

``[rank5]:`` before a line is the global rank; ``[PG 1 Rank 5]`` within it is the rank in that group. They are the same only in
the default group.
"""

import re

from pardbg.collectors.parsing.log_lines import LineRead
from pardbg.watchdog.model.log_event import (
    BarrierFailed,
    CollectiveTimeout,
    Fingerprint,
    FingerprintMismatch,
    GroupName,
    GroupStatus,
    LogEvent,
    StoreTimeout,
    WatchdogStuck,
)

WORDS = {
    "atchdog ": ("Watchdog caught collective operation timeout", "watchdog got stuck"),
    "ast enqueued": ("last enqueued", "Last enqueued"),
    "imed out": ("Heartbeat monitor timed out",),
    "timeout": ("ait timeout after",),
    "ncclUniqueId": ("is setting up NCCL communicator",),
    "monitoredBarrier": ("monitoredBarrier",),
    "Detected mismatch": ("Detected mismatch between collectives",),
}
_GROUP = re.compile(
    r"\[(?:PG (?:ID \d{1,9} PG GUID )?(?P<name>[^\s()\]]{1,200}) ?(?:\((?P<desc>[^)\]]{0,200})\))? ?)?Rank (?P<rank>\d{1,7})\]"
)
_WORK = re.compile(r"Work\w{2,12}\((?:SeqNum=(\d{1,18}), )?OpType=(\w{1,40})")
_NUMEL_IN, _NUMEL_OUT = re.compile(r"NumelIn=(\d{1,18})"), re.compile(r"NumelOut=(\d{1,18})")
_LIMIT, _RAN = re.compile(r"Timeout\(ms\)=(\d{1,18})"), re.compile(r"ran for (\d{1,18}) milliseconds")
_STATUS = re.compile(r"[Ll]ast enqueued (?:NCCL )?work: (-?\d{1,18}), last completed (?:NCCL )?work: (-?\d{1,18})")
_AT_WORK = re.compile(r"(?:at NCCL work|at work(?: sequence id)?): (-?\d{1,18})")
_TIMED_OUT = re.compile(r"collective timeout from {1,2}(?:(?P<own>this local rank)|rank (?P<rank>\d{1,7}))\b")
_PENDING = re.compile(r"workMetaList_\.size\(\)\s?=\s?(\d{1,9})")
_STORE_WAIT = re.compile(r"[Ww]ait timeout after \d{1,18} ?ms, keys: ([^\s,]{1,200})")
_UNIQUE_ID = re.compile(r"retrieving ncclUniqueId from \[(\d{1,7})\]")
_STORE_GET = re.compile(r"store->get\('([^']{1,200})'\) got error")
_NOT_PASSED = re.compile(r"Ranks? ([\d, ]{1,60000}) failed to pass monitoredBarrier")
_REACHED = re.compile(r"[Rr]ank (\d{1,7}) successfully reached monitoredBarrier.{0,200}?from rank (\d{1,7})")
_SIDE = re.compile(
    r"Rank (\d{1,7}) is running (?:inconsistent )?collective: CollectiveFingerPrint\((.{0,600}?)(?:\)(?=[,.]|$)|$)"
)
_FIELD = re.compile(
    r"(SequenceNumber|OpType|TensorShape|TensorDtypes)="
    r"(\[[^\]]{0,200}\]|\d{1,18}(?=OpType=)|[^,()]{0,60}(?:\([^)]{0,60}\))?)"
)
_OPS = {
    "ALLREDUCE": "all_reduce",
    "ALLGATHER": "all_gather",
    "_ALLGATHER_BASE": "_all_gather_base",
    "REDUCE_SCATTER": "reduce_scatter",
    "ALLTOALL": "all_to_all",
    "ALLTOALL_BASE": "all_to_all",
}


def read_c10d(read: LineRead) -> LogEvent | None:
    """What a line of torch's distributed layer tells; None for any other."""
    line = read.line
    if "Heartbeat monitor timed out" in line or "watchdog got stuck" in line:
        pending = _PENDING.search(line)
        return WatchdogStuck(rank=_rank(read), pending=int(pending[1]) if pending else None)
    if (work := _WORK.search(line)) is not None and "ran for" in line:
        return _timeout(read, work)
    if (status := _STATUS.search(line)) is not None:
        return _status(read, status)
    if "collectives on ranks" in line:
        return _mismatch(read)
    return _barrier(read) if "monitoredBarrier" in line else _store(read)


def name_op(op: str) -> str:
    """``all_reduce`` for a watchdog's ``ALLREDUCE``."""
    return _OPS.get(op, op.lower())


def _timeout(read: LineRead, work: re.Match[str]) -> CollectiveTimeout:
    group, group_rank = _group(read.line)
    return CollectiveTimeout(
        rank=_rank(read),
        group=group,
        group_rank=group_rank,
        seq=int(work[1]) if work[1] else None,
        op=name_op(work[2]),
        numel_in=_number(_NUMEL_IN, read.line),
        numel_out=_number(_NUMEL_OUT, read.line),
        timeout_ms=_number(_LIMIT, read.line),
        ran_ms=_number(_RAN, read.line),
    )


def _status(read: LineRead, status: re.Match[str]) -> GroupStatus:
    group, group_rank = _group(read.line)
    return GroupStatus(
        rank=_rank(read),
        group=group,
        group_rank=group_rank,
        at_work=_number(_AT_WORK, read.line),
        enqueued=int(status[1]),
        completed=int(status[2]),
        timed_out=_timed_out(read),
    )


def _timed_out(read: LineRead) -> int | None:
    """The global rank that a line names as the one that gave up."""
    found = _TIMED_OUT.search(read.line)
    if found is None:
        return None
    return _rank(read) if found["own"] else int(found["rank"])


def _mismatch(read: LineRead) -> FingerprintMismatch | None:
    sides = [_fingerprint(match) for match in _SIDE.finditer(read.line)]
    if not sides:
        return None
    return FingerprintMismatch(rank=read.rank, own=sides[0], other=sides[1] if len(sides) > 1 else None)


def _fingerprint(match: re.Match[str]) -> Fingerprint:
    fields = {name: value.strip() for name, value in _FIELD.findall(match[2])}
    seq = fields.get("SequenceNumber", "")
    return Fingerprint(
        group_rank=int(match[1]),
        seq=int(seq) if seq.isdecimal() and len(seq) < 19 else None,
        op=name_op(fields.get("OpType", "")),
        shape=fields.get("TensorShape", ""),
        dtype=fields.get("TensorDtypes", ""),
    )


def _barrier(read: LineRead) -> BarrierFailed | None:
    _, group_rank = _group(read.line)
    if (named := _NOT_PASSED.search(read.line)) is not None:
        absent = tuple(int(number) for number in re.findall(r"\d{1,7}", named[1]))
        return BarrierFailed(rank=read.rank, absent=absent, group_rank=group_rank)
    if (reached := _REACHED.search(read.line)) is not None:
        told, absent = int(reached[1]), (int(reached[2]),)
        return BarrierFailed(rank=read.rank, absent=absent, group_rank=told, is_hearsay=True)
    return None


def _store(read: LineRead) -> StoreTimeout | None:
    source, asked = _UNIQUE_ID.search(read.line), _STORE_GET.search(read.line)
    waited = _STORE_WAIT.search(read.line)
    if waited is None and (source is None or asked is None):
        return None
    keys = asked[1] if asked else waited[1] if waited else ""
    return StoreTimeout(rank=read.rank, keys=keys, waits_for=int(source[1]) if source else None)


def _group(line: str) -> tuple[GroupName, int | None]:
    match = _GROUP.search(line)
    if match is None:
        return GroupName(), None
    name, desc = match["name"] or "", match["desc"] or ""
    return GroupName(name=name, desc=desc or ("default_pg" if name == "0" else "")), int(match["rank"])


def _rank(read: LineRead) -> int | None:
    """The global rank: as signed, else the group rank where the group is the world."""
    if read.rank is not None:
        return read.rank
    group, group_rank = _group(read.line)
    return group_rank if group.is_world else None


def _number(pattern: re.Pattern[str], line: str) -> int | None:
    match = pattern.search(line)
    return int(match[1]) if match else None
