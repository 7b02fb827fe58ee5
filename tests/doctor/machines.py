"""A machine on which nothing is wrong, to be spoilt in one place a test."""

from collections.abc import Iterable

from msgspec.structs import replace

from pardbg.collectors.node.answers import (
    ClockReading,
    DeviceDriver,
    FileClock,
    KernelLogTrial,
    MemoryTrial,
    OomCounterTrial,
    ProcessFilesTrial,
    PtraceTrial,
    PySpyTrial,
    RankLook,
    Trial,
)
from pardbg.collectors.node.surroundings import (
    Capability,
    JobHere,
    KernelSettings,
    Namespaces,
    OwnProcess,
    Processes,
    Software,
    Surroundings,
)
from pardbg.watchdog.doctor.check import Check
from pardbg.watchdog.model.world import RankProcess, World

HOST = Namespaces(pid="pid:[4026531836]", mount="mnt:[4026531841]", user="user:[4026531837]")
ROOT = OwnProcess(
    uid=0, capabilities=1 << Capability.SYS_PTRACE | 1 << Capability.SYSLOG, seccomp=0, namespaces=HOST, init=HOST
)
USER = replace(ROOT, uid=1000, capabilities=0)
TRIAL = Trial(
    memory=MemoryTrial(),
    process_files=ProcessFilesTrial(),
    clock=ClockReading(is_synchronised=True, largest_error_s=0.012),
    oom_counter=OomCounterTrial(path="/sys/fs/cgroup/job/memory.events"),
    py_spy=PySpyTrial(path="/usr/bin/py-spy", version="0.4.3", newest_python=14),
    ptrace=PtraceTrial(),
    driver=DeviceDriver(version="550.54.15"),
    kernel_log=KernelLogTrial(way="/dev/kmsg"),
    file_clock=FileClock(folder="/scratch", ahead_s=0.0),
)
WELL = Surroundings(
    host="node1",
    observed_at="2026-11-29T20:00:00.000Z",
    own=ROOT,
    settings=KernelSettings(dmesg_restrict=1, proc_options=("rw",)),
    trial=TRIAL,
    processes=Processes(),
    software=Software(pardbg="0.1.0", python="3.11.7", kernel="6.8.0-45-generic", torch="2.13.0+cpu"),
)


def machine(
    *,
    own: OwnProcess = ROOT,
    settings: KernelSettings = WELL.settings,
    trial: Trial = TRIAL,
    processes: Processes = WELL.processes,
    environment: dict[str, str] | None = None,
) -> Surroundings:
    """The well machine with a part of it replaced."""
    return replace(WELL, own=own, settings=settings, trial=trial, processes=processes, environment=environment or {})


def job(
    *recorders: dict[str, str],
    torch: tuple[int, int] | None = (2, 13),
    python: int | None = 11,
    is_at_home: bool = True,
    why_no_attach: str | None = "",
    why_no_files: str | None = None,
) -> Processes:
    """One job, a rank for each environment."""
    ranks = tuple(
        RankProcess(rank=rank, pid=100 + rank, started_ticks=1, host="node1", recorder=recorder, is_at_home=is_at_home)
        for rank, recorder in enumerate(recorders)
    )
    look = RankLook(pid=0, python=python, torch=torch, why_no_attach=why_no_attach, why_no_files=why_no_files)
    looks = tuple(replace(look, pid=rank.pid) for rank in ranks)
    return Processes(jobs=(JobHere(name="--job j", world=World(world_size=len(ranks), ranks=ranks), looks=looks),))


def only(checks: Iterable[Check]) -> Check:
    """The one finding of a check."""
    (check,) = checks
    return check
