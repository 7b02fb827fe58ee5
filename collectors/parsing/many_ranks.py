"""Whether a log holds the lines of several ranks, so that a number in its name is a node's or a job's. Pure.

``[default0]:`` is what torchrun's ``--tee`` puts before the lines of a local rank: the role, then the number. Its word on
OMP_NUM_THREADS stands only where it starts several processes, and in its own output, which no file of one rank holds.
"""

import re

_HEAD = 1 << 20  # characters in which several ranks have all spoken
_BANNER = re.compile(r"^(?:[IW]\d{4} .{1,200}\] )?Setting OMP_NUM_THREADS environment variable for each process", re.MULTILINE)
_TEED = re.compile(r"^\[([A-Za-z_]{1,40})(\d{1,4})\]:", re.MULTILINE)
_INTRODUCED = re.compile(r"\brank (\d{1,7})(?: of |/)\d")


def is_of_many_ranks(text: str) -> bool:
    """Whether a launcher of several processes wrote here, or two ranks put their numbers before lines or name themselves."""
    head = text[:_HEAD]
    if _BANNER.search(head) is not None:
        return True
    teed: dict[str, str] = {}
    if any(teed.setdefault(role, number) != number for role, number in _TEED.findall(head)):
        return True
    return len(set(_INTRODUCED.findall(head))) > 1
