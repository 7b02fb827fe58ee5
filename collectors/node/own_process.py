"""Ourselves and the kernel's settings, from files of ``/proc`` that answer at once. Reads only, and leaves nothing behind."""

import os
import re
from pathlib import Path

from pardbg.collectors.node.surroundings import KernelSettings, Namespaces, OwnProcess
from pardbg.collectors.procfs.mounts import parse_mounts
from pardbg.watchdog.errors import ParseError

_LINE = re.compile(r"^(Uid|Groups|CapEff|Seccomp):[ \t]*(.*)$", re.MULTILINE)
_EFFECTIVE = 1


def read_own_process(proc: Path = Path("/proc")) -> OwnProcess:
    """Who we are.

    Raises:
        ParseError: if the kernel writes something else than expected.
    """
    status = (proc / "self/status").read_text(encoding="utf-8", errors="replace")
    return parse_own_status(status, own=_namespaces(proc / "self"), init=_namespaces(proc / "1"))


def parse_own_status(status: str, *, own: Namespaces, init: Namespaces) -> OwnProcess:
    """Reads the lines that matter of ``/proc/self/status``.

    Raises:
        ParseError: if it is no such file.
    """
    lines = dict(_LINE.findall(status))
    try:
        return OwnProcess(
            uid=int(lines["Uid"].split()[_EFFECTIVE]),
            groups=tuple(int(group) for group in lines.get("Groups", "").split()),
            capabilities=int(lines["CapEff"], 16),
            seccomp=int(lines["Seccomp"]) if "Seccomp" in lines else None,
            namespaces=own,
            init=init,
        )
    except (KeyError, IndexError, ValueError) as error:
        raise ParseError(f"not a /proc/self/status: {status[:80]!r}") from error


def read_settings(proc: Path = Path("/proc")) -> KernelSettings:
    """What the administrator has set."""
    return KernelSettings(
        ptrace_scope=_number(proc / "sys/kernel/yama/ptrace_scope"),
        dmesg_restrict=_number(proc / "sys/kernel/dmesg_restrict"),
        proc_options=proc_mount_options((proc / "self/mountinfo").read_text(encoding="utf-8", errors="replace")),
    )


def proc_mount_options(mountinfo: str) -> tuple[str, ...]:
    """The options of ``/proc``: of the last mount there, which hides those below."""
    options = [mount.options for mount in parse_mounts(mountinfo) if mount.place == "/proc" and mount.kind == "proc"]
    return options[-1] if options else ()


def _namespaces(folder: Path) -> Namespaces:
    return Namespaces(pid=_link(folder / "ns/pid"), mount=_link(folder / "ns/mnt"), user=_link(folder / "ns/user"))


def _link(path: Path) -> str:
    try:
        return os.readlink(path)  # noqa: PTH115 - the kernel's words, no path
    except OSError:
        return ""


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
