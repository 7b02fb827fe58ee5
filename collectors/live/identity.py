"""Whether a process is still the one it was."""

from pathlib import Path

from pardbg.collectors.procfs.stat import ProcessStat, parse_stat
from pardbg.watchdog.errors import ParseError


def read_living(pid: int) -> ProcessStat | None:
    """What ``/proc/PID/stat`` says; None if there is no such process, or it has ended and only waits for its parent."""
    try:
        stat = parse_stat(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace"))
    except (OSError, ParseError):
        return None
    return stat if stat.state not in {"Z", "X"} else None


def is_same_process(pid: int, started_ticks: int) -> bool:
    """Whether a process of that number lives and began at that clock tick since boot."""
    stat = read_living(pid)
    return stat is not None and stat.started_ticks == started_ticks
