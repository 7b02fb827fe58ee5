"""Entries of a ring that a scan asks for once digests have shown where they matter."""

from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.recording import Recording


class Wanted(Noun, frozen=True, kw_only=True, omit_defaults=True):
    """What is asked of one rank: the collectives of the group of that name from ``first_seq`` to ``last_seq``.

    Without a group: the whole ring.
    """

    rank: int
    group: str = ""
    first_seq: int = 0
    last_seq: int = 0


class Cut(Noun, frozen=True, kw_only=True):
    """What was asked for."""

    wanted: Wanted
    recording: Recording
