"""Processes for tests: as values, and as a folder of files like `/proc`."""

from collections.abc import Mapping
from pathlib import Path

from pardbg.collectors.jobs.command_line import read_command
from pardbg.collectors.jobs.environment import read_environment
from pardbg.collectors.jobs.process import Census, JobProcess, ProcessLook
from pardbg.collectors.procfs.stat import ProcessStat
from pardbg.watchdog.model.evidence import Absence, Evidence

HOME = "mnt:[4026531841]"
FORKED = 0x40
KERNEL_THREAD = 0x200000
TRAIN = ("python", "train.py")
TORCHRUN = ("/usr/bin/python3", "/opt/bin/torchrun", "--nproc-per-node", "4", "train.py")


def rank_environment(rank: int, size: int = 4, port: int = 29500, **more: str) -> dict[str, str]:
    """What torchrun sets on one host."""
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(size),
        "LOCAL_WORLD_SIZE": str(size),
        "MASTER_ADDR": "10.0.0.1",
        "MASTER_PORT": str(port),
        "TORCHELASTIC_RESTART_COUNT": "0",
    } | more


def environment_bytes(environment: Mapping[str, str]) -> bytes:
    return b"".join(f"{name}={value}\0".encode() for name, value in environment.items())


def command_bytes(command: tuple[str, ...]) -> bytes:
    return b"".join(f"{argument}\0".encode() for argument in command)


def make_process(
    pid: int,
    parent_pid: int = 1,
    environment: Mapping[str, str] | None = None,
    command: tuple[str, ...] = TRAIN,
    *,
    maps_torch: bool | None = False,
    started: int | None = None,
    name: str | None = None,
    flags: int = 0,
    uid: int = 1000,
    is_denied: bool = False,
    namespace_pids: tuple[int, ...] = (),
    network: str = "net:[1]",
) -> JobProcess:
    """A living process; it starts at the tick of its number unless told otherwise."""
    look = ProcessLook(
        pid=pid,
        started_ticks=pid if started is None else started,
        uid=uid,
        namespace_pids=namespace_pids,
        environment={} if is_denied else read_environment(environment_bytes(environment or {})),
        command=read_command(command_bytes(command)),
        is_python=read_command(command_bytes(command)).is_python,
        maps_torch=maps_torch,
        mount_namespace="" if is_denied else HOME,
        network_namespace="" if is_denied else network,
        is_denied=is_denied,
    )
    return JobProcess(stat=make_stat(pid, parent_pid, name or command[0], look.started_ticks, flags=flags), look=look)


def make_stat(
    pid: int, parent_pid: int, name: str, started: int, *, state: str = "S", wait_status: int = 0, flags: int = 0
) -> ProcessStat:
    return ProcessStat(
        pid=pid,
        name=name.rpartition("/")[2][:15],
        state=state,
        parent_pid=parent_pid,
        cpu_ticks=0,
        started_ticks=started,
        wait_status=wait_status,
        flags=flags,
    )


def make_zombie(pid: int, parent_pid: int, wait_status: int, name: str = "python", *, is_denied: bool = False) -> JobProcess:
    """An ended process whose parent has not asked for its exit code."""
    return JobProcess(
        stat=make_stat(pid, parent_pid, name, pid, state="Z", wait_status=wait_status),
        look=ProcessLook(pid=pid, started_ticks=pid, uid=1000, is_denied=is_denied),
    )


def make_silent(pid: int, parent_pid: int, name: str = "python") -> JobProcess:
    """A process that does not show its memory."""
    return JobProcess(stat=make_stat(pid, parent_pid, name, pid, state="D"))


def make_census(*processes: JobProcess, evidence: tuple[Evidence, ...] = ()) -> Census:
    return Census(
        host="node-1",
        processes=processes,
        mount_namespace=HOME,
        ticks=100_000,
        observed_at="2026-11-29T20:00:01.123Z",
        evidence=evidence,
    )


def torchrun_world(
    first_pid: int = 100, size: int = 4, port: int = 29500, command: tuple[str, ...] = TORCHRUN, **more: str
) -> list[JobProcess]:
    """A launcher and its ranks; rank r is process ``first_pid + 1 + r``."""
    ranks = (
        make_process(first_pid + 1 + rank, first_pid, rank_environment(rank, size, port, **more), maps_torch=True)
        for rank in range(size)
    )
    return [make_process(first_pid, 1, {}, command, name="pt_elastic"), *ranks]


def absences(evidence: tuple[Evidence, ...]) -> list[tuple[int | None, str]]:
    return [(item.rank, item.observation.reason.value) for item in evidence if isinstance(item.observation, Absence)]


class FakeProc:
    """A folder that looks like `/proc`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "self" / "ns").mkdir(parents=True)
        (root / "self" / "ns" / "mnt").symlink_to(HOME)

    def add(
        self,
        pid: int,
        parent_pid: int = 1,
        environment: Mapping[str, str] | None = None,
        command: tuple[str, ...] = TRAIN,
        *,
        exe: str = "/usr/bin/python3.11",
        maps: str = "7f00-7f01 r-xp 0 00:00 0 /usr/lib/libc.so.6\n",
        state: str = "S",
        flags: int = 0,
        uid: int = 1000,
        namespace_pids: str = "",
        mount_namespace: str = HOME,
    ) -> Path:
        """Adds one process and gives its folder; it starts at ten times the tick of its number."""
        folder = self.root / str(pid)
        (folder / "ns").mkdir(parents=True)
        name = command[0].rpartition("/")[2][:15]
        fields = [state, parent_pid, 0, 0, 0, 0, flags, *[0] * 12, pid * 10, *[0] * 30]
        (folder / "stat").write_text(f"{pid} ({name}) {' '.join(map(str, fields))}\n")
        pids = namespace_pids or str(pid)
        (folder / "status").write_text(f"Name:\t{name}\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\nNSpid:\t{pids}\n")
        (folder / "environ").write_bytes(environment_bytes(environment or {}))
        (folder / "cmdline").write_bytes(command_bytes(command))
        (folder / "maps").write_text(maps)
        (folder / "exe").symlink_to(exe)
        (folder / "ns" / "mnt").symlink_to(mount_namespace)
        (folder / "ns" / "net").symlink_to("net:[1]")
        return folder
