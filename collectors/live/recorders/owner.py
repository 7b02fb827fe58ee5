"""What must be known of a rank's process before its files are believed: since when it runs, where it is, what it maps.

Cost: a few reads of `/proc`. The memory map takes the lock of the process's memory, which a process stuck in the kernel may
hold: read it in a child that may be abandoned.
"""

import os
import pwd
from pathlib import Path

from pardbg.collectors.inside import name_inside
from pardbg.collectors.live.recorders.request import Target
from pardbg.collectors.procfs.stat import ProcessStat, parse_stat
from pardbg.watchdog.errors import ParseError

_ENDED_STATES = frozenset("ZXx")


def living(target: Target, proc: Path = Path("/proc")) -> ProcessStat | None:
    """The process's own line, None if it has ended or another has its number now."""
    try:
        stat = parse_stat((proc / str(target.pid) / "stat").read_text(errors="replace"))
    except (OSError, ParseError):
        return None
    return stat if stat.started_ticks == target.started_ticks and stat.state not in _ENDED_STATES else None


def working_folder(target: Target) -> bytes:
    """What the process's relative names are relative to, as far as that can be seen."""
    try:
        folder = os.readlink(b"/proc/%d/cwd" % target.pid)  # noqa: PTH115 - bytes
        return folder if target.is_at_home else name_inside(target.pid, folder)
    except OSError:
        return b"/"


def home_folder(target: Target) -> bytes:
    """Where torch looks for the cache folder."""
    if home := target.environment.get("HOME"):
        return home
    try:
        return os.fsencode(pwd.getpwuid(target.uid).pw_dir)
    except KeyError:
        return b"/tmp"


def memory_map(target: Target) -> str:
    """Text of the process's map, empty if it may not be read."""
    try:
        return Path(f"/proc/{target.pid}/maps").read_text(errors="replace")
    except OSError:
        return ""
