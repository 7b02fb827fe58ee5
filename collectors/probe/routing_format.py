"""The file `routing`: what a rank's routers did in its last steps, in mapped memory: reading it takes no help of the rank.

Little-endian. A sealed header, which says how many layers and experts there are; a sealed note of how many steps were ever
written; a table with one sealed row a layer; a ring of slots, one a step. Sealed means ``version u32, crc u32, payload``, as in
`page_format.py`: what was torn is noticed. A slot holds its head, then ``FIGURE_COUNT`` float64 of every layer (NaN: not
known), then the counts of all experts, uint32, layer by layer. A file that another one has replaced has its header wiped.
"""

import struct
import zlib
from typing import NamedTuple

MAGIC = b"PARDBGM\x02"
BUDGET = 4 * 2**20
"""Bytes of the ring of one rank, where it is not larger with `LEAST_SLOTS` already."""
MOST_SLOTS = 512
LEAST_SLOTS = 4
MOST_LAYERS = 4096
MOST_EXPERTS = 65536
MOST_CELLS = 2**18
"""Layers times experts. The largest models have some 2 ** 14; a reader makes a number of 40 bytes of each, in each step."""
MOST_SIZE = 2**26
"""Bytes of a file."""
NAME_SIZE = 160
MOST_VERSIONS = 2**32 - 1

_SEAL = struct.Struct("<II")  # version, checksum
_HEADER = struct.Struct("<8sIQIII")  # magic, pid, created_ns, layers, experts, slots
_NOTE = struct.Struct("<Q")  # steps ever written
_ROW = struct.Struct(f"<iIIII{NAME_SIZE}s")
_SLOT = struct.Struct("<QQQd")  # ordinal, step, ended_ns, loss
_IS_FROZEN, _LEAVES_OUT_DROPS, _IS_SETTLED = 1, 2, 4

HEADER_SIZE = _SEAL.size + _HEADER.size
NOTE_AT, NOTE_SIZE = 64, _SEAL.size + _NOTE.size
TABLE_AT = 128
ROW_SIZE = 192
SLOT_HEAD_SIZE = _SEAL.size + _SLOT.size

FIGURES = ("tokens", "dropped", "predicted_dropped", "capacity", "entropy", "z", "aux_loss", "router_grad_norm")
"""What a slot says of each layer beside its counts, with the names and units of `RoutingRow`."""
FIGURE_COUNT = len(FIGURES)
_FIGURE_SIZE = 8
COUNT_SIZE = 4


class TornError(Exception):
    """What was read is being written."""


class NotRoutingError(Exception):
    """The bytes are no such file of a version that is known here, or one that was replaced."""


class Header(NamedTuple):
    """What the file holds: ``experts`` is the most that a layer has."""

    pid: int
    created_ns: int
    layers: int
    experts: int
    slots: int


class LayerLine(NamedTuple):
    """One layer of the table. 0 for a ``top_k`` or an ``ep_size`` that is not known.

    ``leaves_out_drops``: what was dropped is not among the counts, but for steps whose predicted drops are known.
    ``is_settled``: it is frozen as people do it who mean it, with all of its block or most of the model.
    """

    number: int
    experts: int
    top_k: int
    ep_size: int
    is_frozen: bool
    name: bytes
    leaves_out_drops: bool = False
    is_settled: bool = False


class SlotHead(NamedTuple):
    """One step: the how-manieth since the file was made, its number as the page counts, its end (epoch ns), its loss or NaN."""

    ordinal: int
    step: int
    ended_ns: int
    loss: float


class Layout(NamedTuple):
    """Where things lie, bytes. Figures and counts are offsets within a slot."""

    ring_at: int
    slot_size: int
    figures_at: int
    counts_at: int
    size: int

    def slot_at(self, ordinal: int, slots: int) -> int:
        """Where the slot of a step begins."""
        return self.ring_at + ordinal % slots * self.slot_size


def lay_out(layers: int, experts: int, slots: int) -> Layout:
    """Where things lie in a file of that many."""
    ring_at = TABLE_AT + layers * ROW_SIZE
    counts_at = SLOT_HEAD_SIZE + layers * FIGURE_COUNT * _FIGURE_SIZE
    slot_size = -(-(counts_at + layers * experts * COUNT_SIZE) // 8) * 8
    return Layout(ring_at, slot_size, SLOT_HEAD_SIZE, counts_at, ring_at + slots * slot_size)


def count_slots(layers: int, experts: int) -> int:
    """How many steps a file keeps."""
    return max(LEAST_SLOTS, min(MOST_SLOTS, BUDGET // lay_out(layers, experts, 0).slot_size))


def next_version(version: int) -> int:
    """Never 0, which says "never written"."""
    return version % MOST_VERSIONS + 1


def encode_header(header: Header) -> bytes:
    """The first bytes of a file."""
    return _seal(_HEADER.pack(MAGIC, *header), 1)


def decode_header(data: bytes) -> Header:
    """Reads it.

    Raises:
        NotRoutingError: if it is none, was wiped, or says more than a probe can have written.
    """
    if len(data) < HEADER_SIZE:
        raise NotRoutingError
    try:
        magic, *values = _HEADER.unpack(_unseal(data[:HEADER_SIZE]))
    except TornError as error:
        raise NotRoutingError from error
    header = Header(*values)
    if magic != MAGIC or not is_sane(header):
        raise NotRoutingError
    return header


def is_sane(header: Header) -> bool:
    """Whether a file may be so large: a reader that believes everything would be out of memory."""
    return (
        header.layers <= MOST_LAYERS
        and header.experts <= MOST_EXPERTS
        and header.layers * header.experts <= MOST_CELLS
        and 0 < header.slots <= MOST_SLOTS
        and lay_out(header.layers, header.experts, header.slots).size <= MOST_SIZE
    )


def encode_note(step_count: int, version: int) -> bytes:
    """How many steps were ever written into the ring."""
    return _seal(_NOTE.pack(step_count), version)


def decode_note(data: bytes) -> int:
    """How many steps were ever written into the ring: 0 if none.

    Raises:
        TornError: if that was being written.
    """
    count: int = _NOTE.unpack(_unseal(data))[0] if any(data) else 0
    return count


def encode_line(line: LayerLine, version: int) -> bytes:
    """One row of the table. Of a name that is too long the end is kept: it tells layers apart."""
    flags = _IS_FROZEN * line.is_frozen | _LEAVES_OUT_DROPS * line.leaves_out_drops | _IS_SETTLED * line.is_settled
    row = _ROW.pack(line.number, line.experts, line.top_k, line.ep_size, flags, line.name[-NAME_SIZE:])
    return _seal(row, version)


def decode_line(data: bytes) -> LayerLine:
    """Reads a row of the table.

    Raises:
        TornError: if it was being written, or never was.
    """
    number, experts, top_k, ep_size, flags, name = _ROW.unpack(_unseal(data[: _SEAL.size + _ROW.size]))
    is_frozen, leaves_out_drops, is_settled = (bool(flags & flag) for flag in (_IS_FROZEN, _LEAVES_OUT_DROPS, _IS_SETTLED))
    return LayerLine(number, experts, top_k, ep_size, is_frozen, name.rstrip(b"\0"), leaves_out_drops, is_settled)


def encode_slot_head(head: SlotHead, rest: memoryview, version: int) -> bytes:
    """What stands before figures and counts, which are ``rest``: they are sealed with it."""
    body = _SLOT.pack(*head)
    return _SEAL.pack(version, zlib.crc32(rest, zlib.crc32(body, version))) + body


def decode_slot(data: bytes) -> SlotHead:
    """The head of a whole slot.

    Raises:
        TornError: if it was being written, or never was.
    """
    return SlotHead(*_SLOT.unpack_from(_unseal(data)))


def _seal(payload: bytes, version: int) -> bytes:
    return _SEAL.pack(version, zlib.crc32(payload, version)) + payload


def _unseal(data: bytes) -> bytes:
    if len(data) < _SEAL.size:
        raise TornError
    version, checksum = _SEAL.unpack_from(data)
    payload = data[_SEAL.size :]
    if version == 0 or zlib.crc32(payload, version) != checksum:
        raise TornError
    return payload
