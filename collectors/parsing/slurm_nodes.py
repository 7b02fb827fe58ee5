"""``sinfo --noheader --Node --format=SINFO_FORMAT``: what the controller thinks of nodes."""

from pardbg.collectors.parsing.slurm_record import SlurmNode
from pardbg.collectors.parsing.slurm_values import read_text, read_time
from pardbg.watchdog.errors import ParseError

SINFO_FORMAT = "%N|%T|%H|%E"
_FIELDS = SINFO_FORMAT.count("|")
_NOT_RESPONDING = "*"
_MARKS = "*~#!%$@^-+"
_DOWN = frozenset({"down", "error", "fail", "failing", "powered_down", "powering_down", "unknown", "future", "reboot_issued"})


def parse_nodes(text: str) -> tuple[SlurmNode, ...]:
    """One noun a node, though `sinfo` writes a line for each of its partitions.

    Raises:
        ParseError: if a line is not in that form.
    """
    found: dict[str, SlurmNode] = {}
    for line in text.split("\n"):
        if line.strip():
            node = _parse_line(line)
            found.setdefault(node.name, node)
    return tuple(found.values())


def _parse_line(line: str) -> SlurmNode:
    parts = line.split("|", _FIELDS)
    if len(parts) <= _FIELDS or not parts[0] or not parts[1]:
        raise ParseError(f"not a line of sinfo's {SINFO_FORMAT}")
    name, state, since, reason = parts
    words = frozenset(state.rstrip(_MARKS).lower().split("+"))
    return SlurmNode(
        name=name,
        raw_state=state,
        is_down=not words.isdisjoint(_DOWN),
        is_responding=_NOT_RESPONDING not in state and "not_responding" not in words,
        reason=read_text(reason.strip()),
        since=read_time(since),
    )
