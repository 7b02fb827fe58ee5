"""Tries on a process of our own what pardbg does to ranks, and reads what the kernel shows. Runs in the trying child.

The process is a sibling of this one, not a child: Yama lets a process look into its own children where it refuses others.
"""

import contextlib
import errno
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec.structs import replace

from pardbg.collectors.live.process_folder import ProcessFolder
from pardbg.collectors.node import system_library
from pardbg.collectors.node.answers import (
    ClockReading,
    DeviceDriver,
    FileClock,
    KernelLogTrial,
    MemoryTrial,
    OomCounterTrial,
    ProcessFilesTrial,
    PtraceTrial,
    Trial,
    TrialRequest,
)
from pardbg.collectors.node.driver import read_driver
from pardbg.collectors.node.py_spy_trial import try_py_spy
from pardbg.collectors.procfs.counters import last_ran_ms
from pardbg.collectors.procfs.memory_group import oom_file, parse_oom_kills
from pardbg.collectors.procfs.mounts import parse_mounts


def try_all(request: TrialRequest) -> Iterator[Trial]:
    """What is known after each step; what can hang comes last."""
    trial = Trial(clock=_read_clock(), oom_counter=_try_oom_counter(), process_files=_try_process_files(request))
    yield trial
    trial = replace(trial, memory=_try_memory(request))
    yield trial
    trial = replace(trial, py_spy=try_py_spy(request))
    yield trial
    trial = replace(trial, ptrace=PtraceTrial(error=system_library.hold_and_let_go(request.pid)))
    yield trial
    trial = replace(trial, driver=DeviceDriver(version=read_driver()), kernel_log=_try_kernel_log())
    yield trial
    yield replace(trial, file_clock=_try_file_clock(request.folder))


def _try_memory(request: TrialRequest) -> MemoryTrial:
    def read_file() -> None:
        with open(f"/proc/{request.pid}/mem", "rb", buffering=0) as memory:  # noqa: PTH123
            os.pread(memory.fileno(), 1, request.address)

    return MemoryTrial(call_error=system_library.read_byte(request.pid, request.address), file_error=_error_of(read_file))


def _try_process_files(request: TrialRequest) -> ProcessFilesTrial:
    """The process sleeps in a call, so each of the files has something to say."""
    with ProcessFolder(request.pid) as folder:
        is_usable = {
            "wchan": (folder.text("wchan") or "0") != "0",
            "syscall": bool(folder.text("syscall")),
            "sched": last_ran_ms(folder.text("sched") or "") is not None,
        }
    return ProcessFilesTrial(unusable=tuple(name for name, usable in is_usable.items() if not usable))


def _read_clock() -> ClockReading:
    found = system_library.read_clock()
    return ClockReading(is_synchronised=found[0], largest_error_s=found[1]) if found else ClockReading()


def _try_oom_counter() -> OomCounterTrial:
    proc = Path("/proc/self")
    mounts = parse_mounts((proc / "mountinfo").read_text(encoding="utf-8", errors="replace"))
    path = oom_file((proc / "cgroup").read_text(encoding="utf-8", errors="replace"), mounts)
    if path is None:
        return OomCounterTrial()
    try:
        count = parse_oom_kills(Path(path).read_text(encoding="utf-8", errors="replace"))
    except OSError as error:
        return OomCounterTrial(path=path, error=_name(error))
    return OomCounterTrial(path=path, error="" if count is not None else "ENODATA")


def _try_kernel_log() -> KernelLogTrial:
    """Reads one record, which takes it away from nobody; where there is no such device asks the system call."""

    def read_device() -> None:
        descriptor = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            with contextlib.suppress(BlockingIOError, BrokenPipeError):  # nothing new, or overwritten: both may be read
                os.read(descriptor, 8192)
        finally:
            os.close(descriptor)

    error = _error_of(read_device)
    if error and not system_library.ask_log_size():
        return KernelLogTrial(way="syslog(2)")
    return KernelLogTrial(way="/dev/kmsg", error=error)


def _try_file_clock(folder: str) -> FileClock:
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix="pardbg-doctor-") as file:
            before_s = time.time()
            file.write(b".")
            file.flush()
            written_s = os.fstat(file.fileno()).st_mtime
            after_s = time.time()
    except OSError as error:
        return FileClock(folder=folder, error=_name(error))
    ahead_s = max(0.0, written_s - after_s) + min(0.0, written_s - before_s)
    return FileClock(folder=folder, ahead_s=round(ahead_s, 3))


def _error_of(action: Callable[[], None]) -> str:
    try:
        action()
    except OSError as error:
        return _name(error)
    return ""


def _name(error: OSError) -> str:
    return errno.errorcode.get(error.errno or 0, "EUNKNOWN")
