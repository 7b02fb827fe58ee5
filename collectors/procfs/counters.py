"""The counters of ``/proc``: bytes moved, sleeps, and when a thread last ran."""

import re

_SWITCHES = re.compile(r"^voluntary_ctxt_switches:\s*(\d+)$", re.MULTILINE)
_EXEC_START = re.compile(r"^se\.exec_start\s*:\s*(\d+\.\d+)$", re.MULTILINE)
_MOVED = re.compile(r"^(?:rchar|wchar|read_bytes|write_bytes): (\d+)$", re.MULTILINE)
_PROCESSOR = 36  # position in /proc/PID/stat after the name, from the state on


def voluntary_switches(status: str) -> int | None:
    """How often a thread has gone to sleep, from ``/proc/PID/task/TID/status``."""
    found = _SWITCHES.search(status)
    return int(found[1]) if found else None


def last_ran_ms(sched: str) -> float | None:
    """When a thread that does not run was last on a processor, from ``/proc/PID/sched``.

    In milliseconds on the scheduler's clock *of that processor*: processors differ by what they spent on interrupts.
    """
    found = _EXEC_START.search(sched)
    return float(found[1]) if found else None


def last_processor(stat: str) -> int | None:
    """The processor a thread last ran on, from ``/proc/PID/stat``."""
    fields = stat.rpartition(")")[2].split()
    return int(fields[_PROCESSOR]) if len(fields) > _PROCESSOR and fields[_PROCESSOR].isdecimal() else None


def moved_bytes(io: str) -> int:
    """Bytes a process has read and written, from ``/proc/PID/io``.

    All that went through read and write calls, cached or not (``rchar``, ``wchar``), and what came from disks and goes to them
    (``read_bytes``, ``write_bytes``): pages of mapped files, and what a write that has not returned has done so far, are in the
    second only; the rest of what is on disks counts twice. Not in it: ``send`` and ``recv``.
    """
    return sum(int(number) for number in _MOVED.findall(io))


def cpu_ns(schedstat: str) -> int | None:
    """Processor time of a thread, from ``/proc/PID/task/TID/schedstat``."""
    first = schedstat.split()[:1]
    return int(first[0]) if first and first[0].isdecimal() else None
