"""Reads the kernel log of this host, in a child that may be abandoned; only facts leave it, never a line.

Records of ``/dev/kmsg`` are read without waiting and taken away from nobody; where there is no such device, the system call
``syslog(2)`` copies the whole buffer. Both need CAP_SYSLOG where ``kernel.dmesg_restrict`` is set, as is usual.
"""

import ctypes
import errno
import os
import time
from collections.abc import Callable, Iterator

from msgspec.structs import replace

from pardbg.collectors.parsing.kernel_log import TELLING, parse_kernel_log
from pardbg.collectors.reading_job import KernelLogRead, KernelLogRequest
from pardbg.watchdog.model.kernel import KernelLog, LinkEvent, Moment, OomKill, XidEvent

DEVICE = "/dev/kmsg"
_LONGEST_RECORD = 8192
_MOST_RECORDS = 500_000
_READ_ALL, _SIZE_BUFFER = 3, 10
_LARGEST_BUFFER = 64 * 1024 * 1024
_FIRST_NAMESPACE = 0xEFFFFFFC  # the inode of the pid namespace that a kernel boots with
NS_PER_S = 1_000_000_000


def read_kernel_log(request: KernelLogRequest) -> KernelLogRead:
    """Its events: GPUs' errors of any time, and what was killed or went down since the job began.

    Raises:
        OSError: if nobody may read it.
    """
    try:
        text, way = "\n".join(_records()), DEVICE
    except OSError as error:
        if error.errno not in {errno.ENOENT, errno.ENXIO, errno.EINVAL, errno.ENODEV, errno.EPERM, errno.EACCES}:
            raise
        text, way = _read_buffer(), "syslog(2)"
    boot_ns = time.time_ns() - time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    is_ours = os.stat("/proc/self/ns/pid").st_ino == _FIRST_NAMESPACE  # noqa: PTH116
    return KernelLogRead(log=_keep(parse_kernel_log(text), request.since_up_s, boot_ns, has_pids=is_ours), way=way)


def _keep(log: KernelLog, since_up_s: float, boot_ns: int, *, has_pids: bool) -> KernelLog:
    """What concerns the job, with moments of the clock; numbers of processes only where they are also ours."""

    def is_young(when: Moment) -> bool:
        return when.up_s is None or when.up_s >= since_up_s

    def dated(when: Moment) -> Moment:
        return when if when.up_s is None else Moment(at_ns=boot_ns + int(when.up_s * NS_PER_S), up_s=when.up_s)

    def xid(event: XidEvent) -> XidEvent:
        is_whose = has_pids and is_young(event.when)
        whose = {"pid": event.pid, "name": event.name} if is_whose else {"pid": None, "name": ""}
        return replace(event, when=dated(event.when), **whose)

    def kill(event: OomKill) -> OomKill:
        return replace(event, when=dated(event.when), pid=event.pid if has_pids else None)

    def link(event: LinkEvent) -> LinkEvent:
        return replace(event, when=dated(event.when))

    return KernelLog(
        xids=tuple(map(xid, log.xids)),
        kills=tuple(kill(event) for event in log.kills if is_young(event.when)),
        links=tuple(link(event) for event in log.links if is_young(event.when)),
    )


def _records() -> Iterator[str]:
    """The first line of each record that may tell something."""
    descriptor = os.open(DEVICE, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        for _ in range(_MOST_RECORDS):
            try:
                record = os.read(descriptor, _LONGEST_RECORD)
            except BlockingIOError:
                return
            except BrokenPipeError:  # what was next has been overwritten
                continue
            line = record.partition(b"\n")[0].decode(errors="replace")
            if TELLING.search(line):
                yield line
    finally:
        os.close(descriptor)


def _read_buffer() -> str:
    libc = ctypes.CDLL(None, use_errno=True)
    size = _checked(lambda: libc.klogctl(_SIZE_BUFFER, None, 0))
    buffer = ctypes.create_string_buffer(min(max(size, 1), _LARGEST_BUFFER))
    count = _checked(lambda: libc.klogctl(_READ_ALL, buffer, len(buffer)))
    return buffer.raw[:count].decode(errors="replace")


def _checked(call: Callable[[], int]) -> int:
    result = call()
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return int(result)
