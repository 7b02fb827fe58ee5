"""Folded node lists: ``n[1-2,17]`` to names in Slurm's order, by ClusterShell's NodeSet (`host_names.py` folds them).

Cost: the first list with a bracket imports ClusterShell (70 ms, with PyYAML); 4,096 nodes then take 16 ms.
"""

import re
from math import prod

from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.host_names import node_set

MOST_NODES = 200_000
_PART = re.compile(r"(?:[^\[\],]|\[[^\]]*\])+")
_LEGAL = re.compile(r"(?:[\w.-]|\[\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*\])+", re.ASCII)
_BRACKET = re.compile(r"\[([^\]]*)\]")


def expand_nodes(folded: str) -> tuple[str, ...]:
    """The single names, each once.

    Raises:
        ParseError: if it is no node list, means more than `MOST_NODES`, or ClusterShell is not installed.
    """
    names: dict[str, None] = {}
    if _PART.sub("", folded).strip(","):
        raise ParseError(f"not a node list: {folded[:80]}")
    for part in _PART.findall(folded):
        if _LEGAL.fullmatch(part) is None or _size(part) + len(names) > MOST_NODES:
            raise ParseError(f"not a node list, or too long a one: {part[:80]}")
        names.update(dict.fromkeys(node_set(part) if "[" in part else [part]))
    return tuple(names)


def _size(part: str) -> int:
    return prod(sum(map(_width, inside.split(","))) for inside in _BRACKET.findall(part))


def _width(span: str) -> int:
    first, is_range, last = span.partition("-")
    return max(0, int(last) - int(first)) + 1 if is_range else 1
