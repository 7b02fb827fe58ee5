"""One look at every thread of a process: the call it is in, and what else `why_not` judges by.

Cost to the process: none. Some 0.05 ms a thread.
"""

import os
from pathlib import Path

from msgspec.structs import replace

from pardbg.collectors.attach.eligibility import why_not_thread
from pardbg.collectors.attach.parking import ThreadLook
from pardbg.collectors.attach.thread_status import parse_thread_status
from pardbg.collectors.procfs.system_calls import CALLS, RUNNING
from pardbg.watchdog.model.base import Noun


class ProcessLook(Noun, frozen=True, kw_only=True):
    """All its threads.

    Attributes:
        threads: by their numbers.
        inner_tids: their numbers in their own namespace of processes.
        why_not: why nothing may be done to the process, because of one of them; empty if something may.
    """

    threads: dict[int, ThreadLook]
    inner_tids: frozenset[int]
    why_not: str


def look_at_process(pid: int, proc: Path = Path("/proc")) -> ProcessLook:
    """Looks at every thread.

    Raises:
        OSError: if the process has ended, or may not be looked at.
        ParseError: if what `/proc` says is damaged.
    """
    threads: dict[int, ThreadLook] = {}
    inner: set[int] = set()
    reasons: list[str] = []
    for name in os.listdir(proc / str(pid) / "task"):  # noqa: PTH208
        folder = proc / str(pid) / "task" / name
        try:
            text = (folder / "status").read_text(errors="replace")
            status = parse_thread_status(text)
            place = look_at_call(pid, int(name), proc)
        except (FileNotFoundError, ProcessLookupError):
            continue
        reasons.append(why_not_thread(text))
        inner.add(status.inner_tid)
        threads[int(name)] = replace(place, switches=status.switches, state=status.state)
    return ProcessLook(threads=threads, inner_tids=frozenset(inner), why_not=next(filter(None, reasons), ""))


def look_at_call(pid: int, tid: int, proc: Path = Path("/proc")) -> ThreadLook:
    """Only where a thread is.

    Raises:
        OSError: if it has ended, or may not be looked at.
    """
    fields = (proc / str(pid) / "task" / str(tid) / "syscall").read_text().split()
    if len(fields) < 9:
        return ThreadLook(tid=tid, call=RUNNING)
    name = CALLS["x86_64"].get(int(fields[0]), f"call {fields[0]}")
    values = tuple(int(field, 16) for field in fields[1:9])
    return ThreadLook(tid=tid, call=name, arguments=values[:6], stack=values[6], program=values[7])
