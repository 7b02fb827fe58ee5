"""When a rank issued its last operations and how long each took: all that lateness needs of a ring, small enough for a digest.

Packed they take some 6 bytes each: variable-length integers, differences where they can be, times in tenths of a millisecond.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from pardbg.watchdog.model.operations import DEVICE_BACKENDS, ROOTED_OPS
from pardbg.watchdog.model.recording import Recording

MOST_PACKED = 96
_UNIT_NS = 100_000
_GROUP_SHIFT = 4
_ROOTED, _POLLED, _P2P, _ENDS = 1, 2, 4, 8
_MOST_BITS = 64


class Call(NamedTuple):
    """One finished operation. ``group`` is an index into the recording's table; ``seq`` is -1 for a transfer.

    ``completed_ns`` is 0 where the back end does not tell; ``is_polled``: it tells late, by asking now and then.
    """

    group: int
    seq: int
    created_ns: int
    completed_ns: int
    is_rooted: bool
    is_polled: bool


def recorded_calls(recording: Recording, newest: int) -> tuple[Call, ...]:
    """The newest finished operations of a ring, oldest first.

    None where transfers between two ranks are hidden, or their end is: a rank that waits in one looks late elsewhere.
    """
    operations = recording.operations
    if recording.unrecorded_p2p or recording.damage:
        return ()
    if any(operation.is_p2p and operation.is_done and not operation.completed_ns for operation in operations):
        return ()
    kinds = [(signature.op in ROOTED_OPS, signature.backend in DEVICE_BACKENDS) for signature in recording.signatures]
    return tuple(
        Call(
            operation.group,
            -1 if operation.is_p2p else operation.seq,
            operation.created_ns,
            operation.completed_ns,
            *kinds[operation.signature],
        )
        for operation in operations[-newest:]
        if operation.created_ns and operation.is_done
    )


def pack_calls(calls: Sequence[Call]) -> bytes:
    """The newest of them, so that `unpack_calls` gives them back but for fractions of a millisecond."""
    return bytes(byte for number in _numbers(calls[-MOST_PACKED:]) for byte in _varint(number))


def unpack_calls(data: bytes) -> tuple[Call, ...]:
    """Reads what `pack_calls` wrote; of anything else what comes before the damage."""
    numbers = _read_varints(data)
    calls: list[Call] = []
    last_seq: dict[int, int] = {}
    now = 0
    try:
        while len(calls) < MOST_PACKED:
            head = next(numbers)
            group, flags = head >> _GROUP_SHIFT, head
            now += _signed(next(numbers))
            seq = -1 if flags & _P2P else last_seq.get(group, 0) + _signed(next(numbers))
            last_seq[group] = last_seq.get(group, 0) if flags & _P2P else seq
            ends = now + _signed(next(numbers)) if flags & _ENDS else 0
            calls.append(Call(group, seq, now * _UNIT_NS, ends * _UNIT_NS, bool(flags & _ROOTED), bool(flags & _POLLED)))
    except StopIteration:
        return tuple(calls)
    return tuple(calls)


def _numbers(calls: Iterable[Call]) -> Iterator[int]:
    last_seq: dict[int, int] = {}
    now = 0
    for call in calls:
        is_p2p = call.seq < 0
        flags = call.is_rooted * _ROOTED | call.is_polled * _POLLED | is_p2p * _P2P | bool(call.completed_ns) * _ENDS
        yield call.group << _GROUP_SHIFT | flags
        created = call.created_ns // _UNIT_NS
        yield _unsigned(created - now)
        now = created
        if not is_p2p:
            yield _unsigned(call.seq - last_seq.get(call.group, 0))
            last_seq[call.group] = call.seq
        if call.completed_ns:
            yield _unsigned(call.completed_ns // _UNIT_NS - created)


def _unsigned(number: int) -> int:
    """Small for numbers of either sign that are small."""
    return number << 1 if number >= 0 else (-number << 1) - 1


def _signed(number: int) -> int:
    return number >> 1 if number % 2 == 0 else -(number + 1 >> 1)


def _varint(number: int) -> Iterator[int]:
    while number > 0x7F:
        yield number & 0x7F | 0x80
        number >>= 7
    yield number


def _read_varints(data: bytes) -> Iterator[int]:
    number = shift = 0
    for byte in data:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            yield number
            number = shift = 0
        elif shift > _MOST_BITS:
            return
