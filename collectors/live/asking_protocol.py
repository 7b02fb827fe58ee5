"""What a scan and the child process that reads `/proc` for it say to each other: length-prefixed msgpack."""

import struct

from pardbg.collectors.live.group_memory import GroupInfo
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.process import ProcessSample

LENGTH = struct.Struct("<Q")


class LookRequest(Noun, frozen=True, kw_only=True, tag="look"):
    """Look at one process. ``store_port`` is the port of the job's store, where known."""

    pid: int
    started_ticks: int
    store_port: int | None = None


class GroupsRequest(Noun, frozen=True, kw_only=True, tag="groups"):
    """Read process groups out of one process's memory, given the addresses of their Python objects."""

    pid: int
    started_ticks: int
    addresses: tuple[int, ...]
    world_size: int | None = None


Question = LookRequest | GroupsRequest


class Looked(Noun, frozen=True, kw_only=True, tag="looked"):
    """What was seen; ``is_partial`` if some of it was denied."""

    sample: ProcessSample
    is_partial: bool = False


class GroupsRead(Noun, frozen=True, kw_only=True, tag="groups-read"):
    """The groups found, in the order of the addresses; None where there is none."""

    groups: tuple[GroupInfo | None, ...]


class Gone(Noun, frozen=True, kw_only=True, tag="gone"):
    """The process has ended, or its number is another process's."""


class Denied(Noun, frozen=True, kw_only=True, tag="denied"):
    """We may not see it at all."""


Answer = Looked | GroupsRead | Gone | Denied
