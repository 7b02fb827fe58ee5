"""What is said of kernel logs: errors of GPUs, deaths for memory and ports that went, each as one line of evidence."""

from collections.abc import Iterator
from datetime import datetime, timezone

from pardbg.watchdog.correlators.situation import NS_PER_S, Situation
from pardbg.watchdog.graph.device_faults import HARMLESS_XIDS, name_xid
from pardbg.watchdog.model.kernel import LinkEvent, LinkKind, Moment, OomKill, XidEvent
from pardbg.watchdog.model.names import CollectorName
from pardbg.watchdog.model.report import EvidenceLine
from pardbg.watchdog.store.kernel_events import RANK_NAMES

MOST_LINES = 4


def kernel_lines(situation: Situation, rank: int) -> Iterator[EvidenceLine]:
    """What the log of a rank's host says of its GPU, its process and its children."""
    host, kernel = situation.view.host(rank), situation.view.kernel
    for xid in kernel.xids.get(rank, ())[-MOST_LINES:]:
        if xid.code in HARMLESS_XIDS:
            continue
        told = " (its own line was not found: a later one names it)" if xid.is_implied else ""
        when = Moment(at_ns=xid.at_ns)
        yield kernel_line(situation, host, rank, f"{name_xid(xid.code)} of its GPU{told}{moment_words(when)}", when)
    for whose, kills in (("its process", kernel.kills), ("its child", kernel.child_kills)):
        kill = kills.get(rank)
        if kill is not None:
            yield kernel_line(situation, host, rank, f"{whose} was killed for memory: {kill_words(kill)}", kill.when)


def stray_kill_line(situation: Situation, rank: int) -> EvidenceLine | None:
    """A death for memory on the host of a rank that was killed, where nothing says that it was this rank's."""
    host, kernel = situation.view.host(rank), situation.view.kernel
    if rank in kernel.kills or rank in kernel.child_kills:
        return None
    known = {*kernel.kills.values(), *kernel.child_kills.values()}
    strays = [kill for kill in kernel.kills_on(host) if kill not in known and kill.name.startswith(RANK_NAMES)]
    if not strays:
        return None
    text = f"the kernel killed {kill_words(strays[-1])} for memory: not known to be a process of rank {rank}"
    return kernel_line(situation, host, rank, text, strays[-1].when)


def kernel_line(situation: Situation, host: str | None, rank: int | None, text: str, when: Moment) -> EvidenceLine:
    """Words what a host's kernel log tells."""
    item = situation.view.kernel.evidence_of(host)
    return EvidenceLine(
        source=CollectorName.KERNEL_LOG,
        rank=rank,
        host=host,
        at=as_rfc3339(when) or (item.observed_at if item is not None else None),
        text=text,
        origin=item.origin if item is not None else "",
    )


def kill_words(kill: OomKill) -> str:
    """``python3 (process 4321) of /kubepods/podX, at 18:29:55 UTC``."""
    group = f" of {kill.memory_group}" if kill.memory_group else ""
    whole = ", the whole host had no memory left" if kill.is_global else ""
    number = f" (process {kill.pid})" if kill.pid is not None else ""
    return f"{kill.name}{number}{group}{whole}{moment_words(kill.when)}"


def link_words(event: LinkEvent) -> str:
    """``mlx5_1 port 1 (InfiniBand) went down at 18:29:55 UTC``."""
    port = f" port {event.port}" if event.port is not None else ""
    kind = " (InfiniBand)" if event.kind is LinkKind.INFINIBAND else ""
    return f"{event.device}{port}{kind} {'came up' if event.is_up else 'went down'}{moment_words(event.when)}"


def xid_words(event: XidEvent) -> str:
    """``Xid 145 (NVLink error) of GPU 0000:dc:00 at 18:29:55 UTC``."""
    if event.is_worded:
        return f"GPU {event.pci} was not found when the driver was loaded{moment_words(event.when)} (fallen off the bus)"
    return f"{name_xid(event.code)} of GPU {event.pci}{moment_words(event.when)}"


def moment_words(when: Moment) -> str:
    """`` at 2026-11-22 18:29:55 UTC``, or seconds since the boot, or nothing."""
    at = as_rfc3339(when)
    if at is not None:
        return f" at {at[:19].replace('T', ' ')} UTC"
    return f" {when.up_s:.0f} s after the boot" if when.up_s is not None else ""


def as_rfc3339(when: Moment) -> str | None:
    """RFC 3339; None if the moment is not known, or is none."""
    if when.at_ns is None or not when.has_year:
        return None
    try:
        return datetime.fromtimestamp(when.at_ns // NS_PER_S, tz=timezone.utc).isoformat().replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return None
