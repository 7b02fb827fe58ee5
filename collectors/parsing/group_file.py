"""``groups.jsonl``: the process groups that a rank has created, one line each, with their members. The last line may be cut."""

from typing import Annotated

import msgspec
from msgspec import Meta

from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.members import MAX_WORLD_SIZE
from pardbg.watchdog.model.recording import GroupConfig
from pardbg.watchdog.model.text import printable_text

MOST_BYTES = 16 * 1024**2
MOST_MEMBERS = 64 * MAX_WORLD_SIZE
_LONGEST_NAME = 400
_LONGEST_LINE = 1024**2

_Start = Annotated[int, Meta(ge=0, lt=MAX_WORLD_SIZE)]
_Step = Annotated[int, Meta(gt=-MAX_WORLD_SIZE, lt=MAX_WORLD_SIZE)]
_Count = Annotated[int, Meta(ge=1, le=MAX_WORLD_SIZE)]


class _Line(Noun, frozen=True, kw_only=True):
    name: str
    desc: str | None = None
    runs: tuple[tuple[_Start, _Step, _Count], ...]


def parse_groups(data: bytes) -> tuple[GroupConfig, ...]:
    """Reads the lines in their order; a line that is cut off or makes no sense is left out.

    A name may come twice: the later group is the one that it means now.

    Raises:
        ParseError: if they name more members than the groups of any job have.
    """
    decoder = msgspec.json.Decoder(_Line)
    found: list[GroupConfig] = []
    member_count = 0
    for line in data[:MOST_BYTES].split(b"\n"):
        group = _read(line, decoder)
        if group is not None:
            member_count += sum(count for _, _, count in group.runs)
            if member_count > MOST_MEMBERS:
                raise ParseError(f"groups with more than {MOST_MEMBERS} members together: not believed")
            found.append(group)
    return tuple(found)


def _read(line: bytes, decoder: "msgspec.json.Decoder[_Line]") -> GroupConfig | None:
    if not line or len(line) > _LONGEST_LINE:
        return None
    try:
        raw = decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    is_sound = all(0 <= start + step * (count - 1) < MAX_WORLD_SIZE and (step or count == 1) for start, step, count in raw.runs)
    if not raw.name or not raw.runs or not is_sound or sum(count for _, _, count in raw.runs) > MAX_WORLD_SIZE:
        return None
    name, desc = printable_text(raw.name[:_LONGEST_NAME]), printable_text((raw.desc or "")[:_LONGEST_NAME])
    return GroupConfig(name=name, desc=desc, runs=raw.runs)
