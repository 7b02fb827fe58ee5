"""A GPU that the driver does not find when it is loaded, as it tells in three lines of the kernel log: no Xid is logged. Pure.

``NVRM: The NVIDIA GPU 0000:b3:00.0``, then where it is installed, then ``NVRM: fallen off the bus and is not responding ...``.
"""

import re

from pardbg.watchdog.model.kernel import pci_key

FALLEN_OFF = 79
"""The Xid of a GPU that is lost while the driver runs."""
_NAMED = re.compile(r"NVRM: The NVIDIA GPU (?P<pci>[0-9a-fA-F]{1,8}:[0-9a-fA-F]{1,2}:[0-9a-fA-F]{1,2})\b")
_LOST = re.compile(r"NVRM: (?:has )?fallen off the bus and is not responding")


def named_gpu(message: str) -> str | None:
    """The address in the first of these lines; None if the message is none."""
    match = _NAMED.match(message)
    return pci_key(match["pci"]) if match is not None else None


def says_lost(line: str) -> bool:
    """Whether it is the last of these lines. Kernels write it with a time of its own or without."""
    return _LOST.search(line) is not None
