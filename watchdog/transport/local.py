"""Nodes that are children on this machine: for tests, and for a machine that plays several."""

import os
from collections.abc import Iterable

from pardbg.watchdog.transport.remote import collect_command
from pardbg.watchdog.transport.way import NOT_THERE, Launch, Way


def through_local(nodes: Iterable[str], command: tuple[str, ...] | None = None) -> Way:
    """One child a node, told its name with ``--node``."""
    words = command or collect_command()
    launches = tuple(Launch(nodes=(node,), command=(*words, "--node", node)) for node in dict.fromkeys(nodes))
    return Way(name="local", launches=launches, most_starting=4 * (os.cpu_count() or 1), signs=(NOT_THERE,))
