"""Xid errors of NVIDIA's driver in a kernel log, in the forms of all its versions. Pure."""

import re

from pardbg.watchdog.model.kernel import Moment, XidEvent, pci_key
from pardbg.watchdog.model.text import printable_text

_XID = re.compile(
    r"NVRM: Xid \((?:PCI:)?(?P<pci>[0-9a-fA-F]{1,8}:[0-9a-fA-F]{1,2}:[0-9a-fA-F]{1,2})(?:\.[0-7])?\): (?P<code>\d{1,4})\b"
)
_PID = re.compile(r"\bpid='?(\d{1,9})\b")
_NAME = re.compile(r"\bname='?([^',<]{1,64})")
_CAUSED_BY = re.compile(r"\bcaused by previous Xid (\d{1,4})\b", re.IGNORECASE)
_NONFATAL = re.compile(r"\bNon-?fatal\b", re.IGNORECASE)


def parse_xid(message: str, when: Moment) -> XidEvent | None:
    """The error that a message reports; None if it reports none."""
    match = _XID.match(message)
    pci = pci_key(match["pci"]) if match is not None else None
    if match is None or pci is None:
        return None
    rest = message[match.end() :]
    pid, name, cause = _PID.search(rest), _NAME.search(rest), _CAUSED_BY.search(rest)
    return XidEvent(
        pci=pci,
        code=int(match["code"]),
        when=when,
        pid=int(pid[1]) if pid else None,
        name=printable_text(name[1]) if name else "",
        caused_by=int(cause[1]) if cause else None,
        is_fatal=_NONFATAL.search(rest) is None,
    )
