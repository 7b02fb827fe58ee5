"""Slurm's short form of many node names, as it occurs in its error lines: ``n[17,41-42],m3``. Pure, and bounded."""

from pardbg.collectors.jobs.slurm.node_names import expand_nodes
from pardbg.watchdog.errors import ParseError


def unfold(text: str) -> list[str]:
    """The names; of a form that is not known the text itself."""
    try:
        return list(expand_nodes(text))
    except ParseError:
        return [text]
