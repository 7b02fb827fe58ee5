"""Many names of hosts as one short text, ``n[17,41-42]``, by ClusterShell's NodeSet.

Cost: the first fold imports ClusterShell (70 ms, with PyYAML); 4,096 names then take 55 ms. Groups (``@name``) are switched
off: they would run commands of the site's configuration.
"""

import importlib
import re
from collections.abc import Iterable
from typing import Any

from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.ranks import MOST_CHARACTERS

_PLAIN = re.compile(r"[\w.-]{1,255}", re.ASCII)  # evidence may hold any text: in another NodeSet would see ranges
_FEW = 4


def fold_hosts(names: Iterable[str]) -> str:
    """One text for many names, for people and for command lines; joined by commas where they cannot be folded."""
    listed = list(dict.fromkeys(names))
    if len(listed) < 2 or not all(map(_PLAIN.fullmatch, listed)):
        return ",".join(listed)
    try:
        return str(node_set(",".join(listed)))
    except ParseError:
        return ",".join(listed)


def fold_hosts_briefly(names: Iterable[str], most: int = MOST_CHARACTERS) -> str:
    """The same for a sentence: ``n[3,19,35,51] and 201 more``. The JSON of a report has all of them."""
    listed = list(dict.fromkeys(names))
    folded = fold_hosts(listed)
    if len(folded) <= most or len(listed) <= _FEW:
        return folded
    return f"{fold_hosts(listed[:_FEW])} and {len(listed) - _FEW} more"


def node_set(text: str) -> Any:
    """ClusterShell's NodeSet of a folded list.

    Raises:
        ParseError: if it is none, or ClusterShell is not installed.
    """
    try:
        module = importlib.import_module("ClusterShell.NodeSet")
    except ImportError:
        raise ParseError("ClusterShell is not installed", remedy="pip install ClusterShell") from None
    try:
        return module.NodeSet(text, resolver=module.RESOLVER_NOGROUP)
    except module.NodeSetException as error:
        raise ParseError(f"not a node list: {error}") from None
