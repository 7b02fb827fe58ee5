"""What the kernel of a host has logged that can stop a job: errors of GPUs, processes killed for memory, links that went.

A moment is epoch ns, None where the log has only seconds since the boot; those are kept beside it. Process numbers are those
of the host's own pid namespace.
"""

from enum import Enum

from pardbg.watchdog.model.base import Noun


class Moment(Noun, frozen=True, kw_only=True):
    """When a line was logged. ``at_ns``: epoch ns; ``up_s``: seconds since the boot. Either may be unknown.

    ``has_year`` is False where the log left it out, as syslog does: ``at_ns`` is then of the year 1972.
    """

    at_ns: int | None = None
    up_s: float | None = None
    has_year: bool = True


class XidEvent(Noun, frozen=True, kw_only=True):
    """An error of a GPU that the driver reported.

    Attributes:
        pci: the GPU's address as `pci_key` writes it.
        code: NVIDIA's number of the error.
        when: the moment.
        pid: process that used the GPU, of the host's own numbers; ``name`` its name.
        caused_by: the earlier error that this one is said to follow from.
        is_fatal: False for events of links that are logged as ``Nonfatal``: a warning only.
        is_cleared: whether the driver was loaded anew, or the host booted, after it.
        is_worded: the driver told it in words, without a number.
    """

    pci: str
    code: int
    when: Moment
    pid: int | None = None
    name: str = ""
    caused_by: int | None = None
    is_fatal: bool = True
    is_cleared: bool = False
    is_worded: bool = False


class OomKill(Noun, frozen=True, kw_only=True):
    """A process that the kernel killed for memory.

    ``pid`` is None where the host's numbers are not ours. ``memory_group`` is its cgroup, empty if not said; ``is_global``: the
    whole host had no memory left, not only the cgroup.
    """

    pid: int | None
    name: str
    when: Moment
    memory_group: str = ""
    is_global: bool = False


class LinkKind(str, Enum):
    """What kind of link."""

    INFINIBAND = "infiniband"
    ETHERNET = "ethernet"


class LinkEvent(Noun, frozen=True, kw_only=True):
    """A port that went down or came up. ``device`` as the kernel names it: ``mlx5_1``, ``ib0``, ``0000:3b:00.0``."""

    kind: LinkKind
    device: str
    is_up: bool
    when: Moment
    port: int | None = None


class KernelLog(Noun, frozen=True, kw_only=True, tag="kernel-log"):
    """What one host's kernel log holds, in its order; nothing else of it is kept. Empty: it was read, and says nothing."""

    xids: tuple[XidEvent, ...] = ()
    kills: tuple[OomKill, ...] = ()
    links: tuple[LinkEvent, ...] = ()


def pci_key(address: str | None) -> str | None:
    """One spelling for ``00000000:3B:00.0``, ``0000:3b:00`` and ``3b:00.0``: ``0000:3b:00``. None if it is no address."""
    parts = (address or "").strip().lower().split(":")
    if len(parts) == 2:
        parts = ["0", *parts]
    try:
        domain, bus, slot = parts
        numbers = (int(domain, 16), int(bus, 16), int(slot.partition(".")[0], 16))
    except ValueError:
        return None
    return "{:04x}:{:02x}:{:02x}".format(*numbers) if min(numbers) >= 0 else None
