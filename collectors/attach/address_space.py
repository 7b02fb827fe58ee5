"""``/proc/PID/maps``: what lies where in the memory of a process. Pure."""

from collections.abc import Iterator

from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.base import Noun


class Mapping(Noun, frozen=True, kw_only=True):
    """One line: addresses from ``start`` up to and without ``end``, and the part of the file at ``offset`` that lies there."""

    start: int
    end: int
    permissions: str
    offset: int = 0
    path: str = ""

    def __contains__(self, address: int) -> bool:
        """Whether an address lies in it."""
        return self.start <= address < self.end


def parse_maps(text: str) -> tuple[Mapping, ...]:
    """All mappings, in the order of their addresses.

    Raises:
        ParseError: if a line is none.
    """
    try:
        return tuple(_parse_line(line) for line in text.splitlines())
    except (ValueError, IndexError) as error:
        raise ParseError("not a memory map") from error


def find_mapping(mappings: tuple[Mapping, ...], address: int) -> Mapping | None:
    """The mapping that an address lies in, None if it lies in none."""
    return next((mapping for mapping in mappings if address in mapping), None)


def mappings_of(mappings: tuple[Mapping, ...], path: str) -> Iterator[Mapping]:
    """Those of one file."""
    return (mapping for mapping in mappings if mapping.path == path)


def _parse_line(line: str) -> Mapping:
    fields = line.split(None, 5)
    start, _, end = fields[0].partition("-")
    return Mapping(
        start=int(start, 16),
        end=int(end, 16),
        permissions=fields[1],
        offset=int(fields[2], 16),
        path=fields[5] if len(fields) > 5 else "",
    )
