"""Which entries of a ring are finished. Every back end says it in its own way.

* A discovered completion time, or state ``completed``, is proof everywhere.
* gloo and the hooks of other back ends never leave ``scheduled``: there ``retired`` means finished. On NCCL and its kin
  ``retired`` without completion means the watchdog gave up on it (pytorch/pytorch#114804).
* A send or recv that has retired is finished, be its state ``scheduled``; one that has not is, where a collective that its rank
  issued later in the group is finished (pytorch/pytorch#137969, #160097): before 2.7 nothing else tells of batches.
* The members of a coalesced group stay ``scheduled`` for ever; the closing entry speaks for all of them (#137969, #151238).
* Work of one communicator finishes in order, so an unfinished entry before a finished one of the same group is a blemish of
  the recorder.
"""

import re

from pardbg.collectors.parsing.dump_format import RawDump, RawEntry

_P2P_NAME = re.compile(r"(send|recv) (\d{1,9})(?:->|<-)(\d{1,9})$", re.ASCII)


def split_name(profiling_name: str) -> tuple[str, str]:
    """``nccl:all_reduce`` -> back end and bare name."""
    backend, colon, op = profiling_name.partition(":")
    return (backend, op) if colon else ("", profiling_name)


def p2p_ends(op: str) -> tuple[str, int | None, int | None]:
    """``send 0->1`` -> ``send``, source, destination (group ranks); the first number of a recv is the receiver."""
    match = _P2P_NAME.match(op)
    if match is None:
        return op, None, None
    kind, left, right = match[1], int(match[2]), int(match[3])
    return (kind, left, right) if kind == "send" else (kind, right, left)


def is_marked_done(entry: RawEntry, *, on_device: bool) -> bool:
    """What the entry itself says."""
    if entry.state == "completed" or entry.time_discovered_completed_ns:
        return True
    return entry.retired and (not on_device or is_left_scheduled(entry))


def is_left_scheduled(entry: RawEntry) -> bool:
    """Whether it is a send or recv in the state that recorders may leave it in for ever. One that ``started`` is told of."""
    return entry.is_p2p and entry.state == "scheduled"


def collectives_completed(dump: RawDump) -> dict[str, int]:
    """Per local group id the last completed collective, where the counter speaks of collectives at all.

    The counter holds the number of the last *work*, be it a collective or P2P, each from a sequence of its own. So it is used
    only for groups without P2P whose newest entry is the collective that was enqueued last.
    """
    newest = {str(entry.pg_id): entry for entry in dump.entries}
    mixed = {str(entry.pg_id) for entry in dump.entries if entry.is_p2p or entry.p2p_seq_id}
    return {
        local_id: progress.last_completed_collective
        for local_id, progress in dump.pg_status.items()
        if local_id in newest and local_id not in mixed and newest[local_id].seq == progress.last_enqueued_collective
    }


def idle_groups(dump: RawDump) -> frozenset[str]:
    """Local ids of the groups with as much completed as enqueued, in a dump of unfinished entries only; else none.

    In such a dump the closing entries that speak for coalesced P2P were filtered out, and their members stay open for ever.
    Where finished entries are present, the entries speak for themselves.
    """
    if any(entry.state == "completed" or entry.time_discovered_completed_ns for entry in dump.entries):
        return frozenset()
    return frozenset(
        local_id
        for local_id, progress in dump.pg_status.items()
        if progress.last_enqueued_collective == progress.last_completed_collective >= 0
    )


def unrecorded_p2p(dump: RawDump) -> list[str]:
    """Local ids of the gloo groups that carry send and recv.

    gloo makes no entry for them, but numbers them: the operation number runs ahead of the collective sequence number. A recv
    still waiting is not even counted (measured with torch 2.13), so the gap tells that such operations occur, not whether one
    is outstanding.
    """
    newest = {str(entry.pg_id): entry for entry in dump.entries}
    return [
        local_id
        for local_id, entry in newest.items()
        if split_name(entry.profiling_name)[0] == "gloo" and entry.op_id > entry.seq > 0
    ]
