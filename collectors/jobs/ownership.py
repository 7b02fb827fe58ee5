"""A census of one user's processes: whoever asks on his behalf must not see what is not his.

A process is his if the kernel says that its folder in ``/proc`` is: not that of a program which runs with the rights of another
user, nor of one that may not be traced. Cost: a system call a process; it cannot block.
"""

from pathlib import Path

from msgspec.structs import replace

from pardbg.collectors.jobs.process import Census, JobProcess
from pardbg.watchdog.model.evidence import Absence, Evidence
from pardbg.watchdog.model.names import AbsenceReason


def only_of(census: Census, uid: int, proc: Path) -> Census:
    """The census without others' processes, and without what is told of them."""
    processes = tuple(process for process in census.processes if _is_of(process, uid, proc))
    places = {str(proc / str(process.pid)) for process in processes}
    evidence = tuple(item for item in census.evidence if item.origin in places or _is_of_everybody(item, proc))
    return replace(census, processes=processes, evidence=evidence)


def _is_of(process: JobProcess, uid: int, proc: Path) -> bool:
    if process.look is not None and process.look.uid != uid:
        return False
    try:
        return (proc / str(process.pid)).stat().st_uid == uid
    except OSError:
        return False


def _is_of_everybody(item: Evidence, proc: Path) -> bool:
    """Whether it says that no process at all could be looked into."""
    seen = item.observation
    return item.origin == str(proc) and isinstance(seen, Absence) and seen.reason is not AbsenceReason.DENIED
