"""One look at the processes of ranks through ``/proc``: states, calls, counters, children. Runs in the child of `asking.py`.

Cost: about 2 ms a rank, and one reading of all processes' states a look; the processes are not stopped, nor woken.
"""

import os
import re
import time
from collections.abc import Callable, Iterable
from functools import cached_property

from pardbg.collectors.live.descriptor import SocketTables, describe_descriptor
from pardbg.collectors.live.process_folder import ProcessFolder
from pardbg.collectors.live.process_table import descendants, read_process_table
from pardbg.collectors.live.scheduler_clock import SchedulerClock
from pardbg.collectors.procfs import counters
from pardbg.collectors.procfs.cpu_group import parse_throttled_s, throttle_file
from pardbg.collectors.procfs.memory_group import oom_file, parse_oom_kills
from pardbg.collectors.procfs.mounts import Mount, parse_mounts
from pardbg.collectors.procfs.stat import ProcessStat, parse_stat
from pardbg.collectors.procfs.system_calls import SystemCall, parse_system_call
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.process import ChildProcess, ProcessSample
from pardbg.watchdog.model.text import printable_text

_MOST_CHILDREN = 32
_ACCELERATOR = re.compile(r"/dev/(?:nvidia\d|kfd$|accel|davinci\d)")
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_CLOCK_SLACK_S = 5.0


class ProcessGoneError(Exception):
    """The process has ended, or its number is another process's now."""


class Looker:
    """What the ranks of one look share: the table of processes, of sockets, the clocks. Made for one look."""

    def __init__(self, proc: str = "/proc") -> None:
        self._proc = proc
        self._sockets = SocketTables()
        self._clock = SchedulerClock()

    @cached_property
    def _children(self) -> dict[int, list[ProcessStat]]:
        return read_process_table(self._proc)

    @cached_property
    def _mounts(self) -> tuple[Mount, ...]:
        with ProcessFolder(os.getpid()) as own:
            return tuple(parse_mounts(own.text("mountinfo") or ""))

    def look(self, pid: int, started_ticks: int, store_port: int | None) -> tuple[ProcessSample, bool]:
        """Looks at the main thread of one process; also says whether part of it was denied.

        Raises:
            ProcessGoneError: if it has ended.
            OSError: if it is hidden.
        """
        with self._open(pid) as folder:
            text = folder.text("stat")
            stat = _parse_stat(text)
            if stat is None or stat.started_ticks != started_ticks:
                raise ProcessGoneError
            call = _read_call(folder, stat.state)
            blocked_on = describe_descriptor(folder, call, self._sockets, store_port) if call else None
            below = descendants(self._children, pid)
            sample = ProcessSample(
                pid=pid,
                started_ticks=started_ticks,
                state=stat.state,
                wait_channel=_read_wait_channel(folder, call),
                system_call=call.name if call else None,
                blocked_on=blocked_on.words if blocked_on else None,
                is_store=blocked_on is not None and blocked_on.is_store,
                voluntary_switches=counters.voluntary_switches(folder.text(f"task/{pid}/status") or ""),
                moved_bytes=self._moved_bytes(folder, below),
                cpu_s=_cpu_s(folder, pid),
                still_s=self._still_s(folder, stat.state, text or ""),
                children=tuple(filter(None, map(self._describe_child, below[:_MOST_CHILDREN]))),
                oom_kills=parse_oom_kills(self._counter(folder, oom_file)),
                throttled_s=parse_throttled_s(self._counter(folder, throttle_file)),
                uses_device=_uses_device(folder),
            )
            return sample, folder.is_denied

    def _open(self, pid: int) -> ProcessFolder:
        try:
            return ProcessFolder(pid, self._proc)
        except FileNotFoundError as error:
            if _exists(pid):
                raise PermissionError("hidden") from error
            raise ProcessGoneError from error

    def _still_s(self, folder: ProcessFolder, state: str, stat: str) -> float | None:
        if state == "R":
            return 0.0
        ran_ms = counters.last_ran_ms(folder.text("sched") or "")
        processor = counters.last_processor(stat)
        if ran_ms is None or processor is None or state in {"Z", "X"}:
            return None
        now_ms = self._clock.now_ms(processor)
        still_s = None if now_ms is None else max(0.0, now_ms - ran_ms) / 1000
        is_longer_than_life = still_s is not None and still_s > _age_s(stat) + _CLOCK_SLACK_S  # never yet counted as run
        return None if is_longer_than_life else still_s

    def _moved_bytes(self, folder: ProcessFolder, below: list[ProcessStat]) -> int | None:
        """Of the process and everything below it; the kernel adds what ended children moved to their parent."""
        own = folder.text("io")
        if own is None:
            return None
        total = counters.moved_bytes(own)
        for stat in below:
            try:
                with ProcessFolder(stat.pid, self._proc) as child:
                    total += counters.moved_bytes(child.text("io") or "")
            except OSError:
                continue
        return total

    def _describe_child(self, stat: ProcessStat) -> ChildProcess | None:
        try:
            with ProcessFolder(stat.pid, self._proc) as folder:
                now = _parse_stat(folder.text("stat"))
                if now is None or now.started_ticks != stat.started_ticks:
                    return None
                call = _read_call(folder, now.state)
                return ChildProcess(
                    pid=stat.pid,
                    name=printable_text(now.name),
                    state=now.state,
                    wait_channel=_read_wait_channel(folder, call),
                    system_call=call.name if call else None,
                    cpu_s=now.cpu_ticks / _TICKS_PER_S,
                )
        except OSError:
            return None

    def _counter(self, folder: ProcessFolder, find: Callable[[str, Iterable[Mount]], str | None]) -> str:
        """What a counter of its cgroup says; empty if there is none."""
        path = find(folder.text("cgroup") or "", self._mounts)
        if path is None:
            return ""
        try:
            with open(path, encoding="utf-8") as counter:  # noqa: PTH123
                return counter.read()
        except (OSError, UnicodeDecodeError):
            return ""


def _exists(pid: int) -> bool:
    try:
        os.getpgid(pid)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _parse_stat(text: str | None) -> ProcessStat | None:
    try:
        return parse_stat(text) if text else None
    except ParseError:
        return None


def _read_call(folder: ProcessFolder, state: str) -> SystemCall | None:
    text = folder.text("syscall")
    try:
        return parse_system_call(text, state) if text else None
    except ParseError:
        return None


def _read_wait_channel(folder: ProcessFolder, call: SystemCall | None) -> str | None:
    """The kernel writes 0 both for a thread that runs and for a reader that may not know."""
    channel = folder.text("wchan")
    if channel == "0":
        return "" if call is not None else None
    return channel or None


def _cpu_s(folder: ProcessFolder, pid: int) -> float | None:
    precise_ns = counters.cpu_ns(folder.text(f"task/{pid}/schedstat") or "")
    if precise_ns is not None:
        return precise_ns / 1e9
    stat = _parse_stat(folder.text(f"task/{pid}/stat"))
    return stat.cpu_ticks / _TICKS_PER_S if stat else None


def _uses_device(folder: ProcessFolder) -> bool:
    return any(_ACCELERATOR.match(folder.link(f"fd/{number}") or "") for number in folder.descriptors())


def _age_s(stat: str) -> float:
    """How old the process is."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) - parse_stat(stat).started_ticks / _TICKS_PER_S
