"""Ids of incidents: short, unique, and they sort by time: ``20261130-061500-4f2a``."""

import hashlib
import re
from datetime import datetime, timezone

_ID = re.compile(r"(?P<moment>\d{8}-\d{6})-[0-9a-f]{4}", re.ASCII)
_FORM = "%Y%m%d-%H%M%S"


def new_id(now_s: float, world: str, turn: int = 0) -> str:
    """An id.

    Args:
        now_s: when the incident begins, epoch seconds.
        world: of which world of which attempt; two of one second differ by it.
        turn: 0; 1, 2, ... if the ids before are taken.
    """
    mark = hashlib.blake2b(f"{world}\0{turn}".encode("utf-8", "surrogateescape"), digest_size=2).hexdigest()
    return f"{datetime.fromtimestamp(now_s, tz=timezone.utc):{_FORM}}-{mark}"


def is_id(text: str) -> bool:
    """Whether it is one: nothing else may name a folder of evidence."""
    return _ID.fullmatch(text) is not None


def moment_of(incident_id: str) -> float:
    """When an incident began, epoch seconds, by its id."""
    found = _ID.fullmatch(incident_id)
    if found is None:
        raise ValueError(f"{incident_id!r} is no id of an incident")
    return datetime.strptime(found["moment"], _FORM).replace(tzinfo=timezone.utc).timestamp()
