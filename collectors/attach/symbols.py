"""Finds functions and data of a library in the memory of the process that has loaded it, as its own dynamic linker does.

Nothing is read but that memory: the file may have been replaced, or lie in a mount namespace where it is another one. Pure;
what is read is the process's to choose, so every count is bounded.
"""

import struct
from collections.abc import Callable, Iterator

from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.base import Noun

Read = Callable[[int, int], bytes]
"""Gives so many bytes of the process's memory at an address, or as many as are there."""

_MAGIC = b"\x7fELF\x02\x01"  # 64 bit, little endian
_LOAD, _DYNAMIC = 1, 2
_STRINGS, _SYMBOLS, _GNU_HASH = 5, 6, 0x6FFFFEF5
_PAGE = 4096
_MOST_HEADERS, _MOST_ENTRIES, _MOST_STEPS = 64, 256, 4096
_SYMBOL = struct.Struct("<IBBHQQ")


class Symbol(Noun, frozen=True, kw_only=True):
    """Where it lies in the process, and how many bytes it has."""

    start: int
    size: int


class _Library(Noun, frozen=True, kw_only=True):
    bias: int
    strings: int
    symbols: int
    hashes: int


def find_symbols(read: Read, start: int, names: tuple[str, ...]) -> dict[str, Symbol]:
    """Those of the names that a library offers to others.

    Args:
        read: reads the process's memory.
        start: where the first byte of the library's file lies.
        names: without versions.

    Raises:
        ParseError: if no library lies there.
    """
    try:
        library = _open(read, start)
        found = {name: _find(read, library, name.encode()) for name in names} if library else {}
    except struct.error as error:
        raise ParseError("not a library in memory") from error
    return {name: symbol for name, symbol in found.items() if symbol is not None}


def _open(read: Read, start: int) -> _Library | None:
    head = read(start, 64)
    if head[:6] != _MAGIC:
        raise ParseError("not a library in memory")
    at_headers, count = struct.unpack_from("<Q", head, 32)[0], struct.unpack_from("<H", head, 56)[0]
    table = read(start + at_headers, min(count, _MOST_HEADERS) * 56)
    headers = list(struct.iter_unpack("<IIQQQQQQ", table))
    first = next((header for header in headers if header[0] == _LOAD), None)
    dynamic = next((header for header in headers if header[0] == _DYNAMIC), None)
    if first is None or dynamic is None:
        return None
    bias = start - (first[3] & -_PAGE)
    entries = dict(_entries(read(bias + dynamic[3], min(dynamic[6], _MOST_ENTRIES * 16) & -16)))
    places = [entries.get(tag, 0) for tag in (_STRINGS, _SYMBOLS, _GNU_HASH)]
    if not all(places):
        return None
    # The linker has put addresses there; where it may not write, they are still as they were in the file.
    strings, symbols, hashes = (place if place >= bias else place + bias for place in places)
    return _Library(bias=bias, strings=strings, symbols=symbols, hashes=hashes)


def _entries(data: bytes) -> Iterator[tuple[int, int]]:
    for tag, value in struct.iter_unpack("<qQ", data):
        if tag == 0:
            return
        yield tag, value


def _find(read: Read, library: _Library, name: bytes) -> Symbol | None:
    """By the table of hashes: a bucket's chain of symbols, whose last one has a hash that ends in 1."""
    buckets, first, words, _ = struct.unpack("<IIII", read(library.hashes, 16))
    wanted = _gnu_hash(name)
    at_buckets = library.hashes + 16 + words * 8
    (index,) = struct.unpack("<I", read(at_buckets + 4 * (wanted % buckets), 4)) if buckets else (0,)
    for position in range(index, index + _MOST_STEPS if index >= first and index else index):
        (value,) = struct.unpack("<I", read(at_buckets + 4 * (buckets + position - first), 4))
        if value | 1 == wanted | 1:
            at_name, _, _, section, address, size = _SYMBOL.unpack(read(library.symbols + position * 24, 24))
            if section and read(library.strings + at_name, len(name) + 1) == name + b"\0":
                return Symbol(start=library.bias + address, size=size)
        if value & 1:
            break
    return None


def _gnu_hash(name: bytes) -> int:
    value = 5381
    for byte in name:
        value = (value * 33 + byte) & 0xFFFFFFFF
    return value
