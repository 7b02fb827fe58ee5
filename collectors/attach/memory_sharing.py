"""Whether a process shares its memory with another one: the child of `vfork` does until it runs its own program.

Cost to the process: none; one system call for its parent and for each of its children. A kernel without `kcmp` tells nothing.
"""

import ctypes
import os
from pathlib import Path

from pardbg.collectors.procfs.stat import parse_stat

_KCMP, _MEMORY, _EQUAL = 312, 1, 0  # of x86_64


def shares_memory(pid: int, proc: Path = Path("/proc")) -> bool:
    """Whether its parent or a child of it uses the same memory.

    Raises:
        OSError: if the process has ended.
        ParseError: if what `/proc` says is damaged.
    """
    parent = parse_stat((proc / str(pid) / "stat").read_text(errors="replace")).parent_pid
    call = ctypes.CDLL(None).syscall
    return any(call(_KCMP, pid, other, _MEMORY, 0, 0) == _EQUAL for other in (parent, *_children(pid, proc)) if other)


def _children(pid: int, proc: Path) -> list[int]:
    """Of all its threads; those whose threads end meanwhile are left out."""
    found: list[int] = []
    for name in os.listdir(proc / str(pid) / "task"):  # noqa: PTH208
        try:
            found += map(int, (proc / str(pid) / "task" / name / "children").read_text().split())
        except OSError:  # it has ended, or the kernel keeps no such list
            continue
    return found
