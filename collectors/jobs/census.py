"""All user processes of this machine, with what says whether they are ranks.

Cost: about 0.1 s for 500 processes, most of it the start of one child process, which reads what a stuck process may withhold.
Deadline: `SILENCE_S` without an answer, then whoever has not answered is an `Absence` and the others are still used. Nothing is
written and nothing is left behind.
"""

import contextlib
import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path

from pardbg.collectors.jobs.process import Census, JobProcess, LookRequest, Looks
from pardbg.collectors.live.moment import now_rfc3339
from pardbg.collectors.procfs.stat import ProcessStat, parse_stat
from pardbg.collectors.reading import Reader, Task
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.evidence import Absence, Evidence
from pardbg.watchdog.model.names import AbsenceReason, CollectorName

PROC = Path("/proc")
SILENCE_S = 1.0
_START_S = 5.0  # for the child, on a machine whose cores are all busy


def take_census(proc: Path = PROC, *, silence_s: float = SILENCE_S, host: str | None = None) -> Census:
    """Reads everybody once.

    Args:
        proc: where the kernel shows processes.
        silence_s: how long no process may answer before the rest is given up.
        host: the name of this machine, if not its own.
    """
    host = host or socket.gethostname()
    observed_at = now_rfc3339()
    ticks_per_s = os.sysconf("SC_CLK_TCK")
    stats = _user_processes(proc)
    looks, problem = _ask_child(proc, tuple(stats), silence_s)
    processes = _join(stats, looks)
    return Census(
        host=host,
        processes=processes,
        mount_namespace=_own_mount_namespace(proc),
        ticks=int(time.clock_gettime(time.CLOCK_BOOTTIME) * ticks_per_s),
        ticks_per_s=ticks_per_s,
        observed_at=observed_at,
        evidence=tuple(
            Evidence(
                source=CollectorName.HOST, rank=None, host=host, observed_at=observed_at, observation=absence, origin=origin
            )
            for absence, origin in _absences(processes, problem, proc)
        ),
    )


def _user_processes(proc: Path) -> dict[int, ProcessStat]:
    """By pid, without ourselves and the kernel's threads; parents mostly before children. ``stat`` never blocks."""
    stats: dict[int, ProcessStat] = {}
    for pid in sorted(int(name) for name in os.listdir(proc) if name.isdecimal()):  # noqa: PTH208 - names only
        with contextlib.suppress(OSError, ParseError):
            stats[pid] = parse_stat((proc / str(pid) / "stat").read_text(encoding="utf-8", errors="replace"))
    ourselves = _link(proc / "self")
    return {pid: stat for pid, stat in stats.items() if not stat.is_kernel_thread and str(pid) != ourselves}


def _ask_child(proc: Path, pids: tuple[int, ...], silence_s: float) -> tuple[Looks, Absence | None]:
    """The looks, and why there are none."""
    request = LookRequest(proc=os.fsencode(proc), pids=pids, silence_s=silence_s)
    patience_s = _START_S + silence_s
    with Reader(deadline_s=patience_s) as reader:
        answer = reader.ask([Task(request=request, path=str(proc))], within_s=patience_s).get(str(proc))
    if isinstance(answer, Looks):
        return answer, None
    problem = getattr(answer, "problem", None)
    reason = problem.reason if problem else AbsenceReason.UNREADABLE
    detail = f"no process could be looked into: {problem.detail if problem else 'no answer'}"
    return Looks(processes=(), silent=pids), Absence(reason=reason, detail=detail)


def _join(stats: Mapping[int, ProcessStat], looks: Looks) -> tuple[JobProcess, ...]:
    """Each process with its look; without those that ended, or ended and gave their number away, in between."""
    answered = {look.pid: look for look in looks.processes if look.started_ticks == stats[look.pid].started_ticks}
    silent = frozenset(looks.silent)
    return tuple(
        JobProcess(stat=stat, look=answered.get(pid)) for pid, stat in stats.items() if pid in answered or pid in silent
    )


def _absences(processes: tuple[JobProcess, ...], problem: Absence | None, proc: Path) -> list[tuple[Absence, str]]:
    """What could not be seen, each with the place where it would be."""
    if problem is not None:
        return [(problem, str(proc))]
    absences = [
        (
            Absence(
                reason=AbsenceReason.TIMED_OUT,
                detail=f"process {process.pid} ({process.stat.name}, state {process.stat.state}) does not show its memory: "
                "something holds it in the kernel",
            ),
            str(proc / str(process.pid)),
        )
        for process in processes
        if process.is_silent
    ]
    denied = [process for process in processes if process.is_denied and process.is_python]
    if denied:
        uids = sorted({process.look.uid for process in denied if process.look})
        who = ", ".join(map(str, uids[:5])) + (", ..." if len(uids) > 5 else "")
        detail = (
            f"{len(denied)} Python process{'es' if len(denied) > 1 else ''} of uid {who} may not be looked into: "
            "run pardbg as that user or as root"
        )
        absences.append((Absence(reason=AbsenceReason.DENIED, detail=detail), str(proc)))
    return absences


def _own_mount_namespace(proc: Path) -> str:
    return _link(proc / "self" / "ns" / "mnt")


def _link(path: Path) -> str:
    try:
        return str(path.readlink())
    except OSError:
        return ""
