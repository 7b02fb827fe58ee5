"""A real Slurm for tests: munge, a controller and two nodes on loopback, in a folder of its own, as root.

Needs the Debian packages `PACKAGES`; `why_not` says what is missing. Both nodes are this machine; a process knows its own by
``SLURMD_NODENAME`` (n1, n2). From start to two idle nodes: 1 to 2 s. Daemons die with the test run even where that is killed;
what jobs have left is found by a mark in its environment, and ended by its number.

Where our interpreter lies in a private folder all runs in a mount namespace of its own (`reachable.py`), so that jobs and
`Cluster.run` may be another user's.
"""

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.slurm.accounting import accounting_lines, start_accounting
from tests.slurm.reachable import opening_script, private_places

PACKAGES = ("slurmctld", "slurmd", "slurm-client", "munge")
PROGRAMS = ("slurmctld", "slurmd", "srun", "sbatch", "squeue", "scontrol", "munged", "setpriv", "nsenter")
NODES = ("n1", "n2")
HOST = socket.gethostname().partition(".")[0]
PARTITIONS = ("debug", "urgent")
NOBODY = 65534
READY_S = 30.0
COMMAND_S = 30.0
END_S = 5.0
POLL_S = 0.05
_MARK = "PARDBG_TEST_CLUSTER"
DIE_WITH_US = ("setpriv", "--pdeathsig", "KILL")

_CONF = """\
ClusterName=pardbg
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
ReturnToService=2
SlurmctldPidFile={folder}/run/slurmctld.pid
SlurmdPidFile={folder}/run/slurmd.%n.pid
SlurmdSpoolDir={folder}/spool.%n
StateSaveLocation={folder}/state
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd.%n.log
SlurmdDebug=info
SlurmdParameters=config_overrides
SlurmctldTimeout=30
SlurmdTimeout={node_timeout_s}
InactiveLimit=0
KillWait=2
OverTimeLimit=0
MinJobAge=300
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_interval=1,batch_sched_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/none
{accounting}
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
NodeName=n[1-2] NodeHostname={host} NodeAddr=127.0.0.1 Port={node_ports} CPUs=24 RealMemory=8000 State=UNKNOWN
PartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=1
PartitionName=urgent Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=10
"""


class ClusterError(Exception):
    """The cluster did not do what a test needs; with the end of its logs."""


def why_not() -> str:
    """Why no cluster can be started here; empty if one can."""
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        return f"{', '.join(missing)} not installed: apt-get install -y --no-install-recommends {' '.join(PACKAGES)}"
    return "" if os.geteuid() == 0 else "slurmd starts jobs as other users: only root may"


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """A cluster that runs. ``folder`` is readable to everybody; ``work`` in it is writable to everybody."""

    folder: Path
    _daemons: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict, repr=False)
    _entrance: list[str] = field(default_factory=list, repr=False)

    @property
    def work(self) -> Path:
        """Where jobs work and write."""
        return self.folder / "work"

    @property
    def environment(self) -> dict[str, str]:
        """Ours, with this cluster as the one that Slurm's commands speak to, and without an outer job."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "SBATCH", "SQUEUE"))}
        return {**inherited, "SLURM_CONF": str(self.folder / "slurm.conf"), _MARK: str(self.folder)}

    def command(self, *command: str, as_uid: int = 0) -> list[str]:
        """What to start so that the command runs inside the cluster, in `work`, as that user."""
        home = ["env", f"HOME={self.work}"] if as_uid else []
        return [*self._entrance, "env", f"--chdir={self.work}", *as_user(as_uid), *home, *command]

    def run(self, *command: str, as_uid: int = 0, deadline_s: float = COMMAND_S) -> str:
        """Standard output of a command.

        Raises:
            ClusterError: if it fails.
        """
        done = subprocess.run(
            self.command(*command, as_uid=as_uid),
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=deadline_s,
            check=False,
        )
        if done.returncode:
            raise ClusterError(f"{command} ended with {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def submit(self, script: str, *options: str, as_uid: int = 0) -> str:
        """The id of a batch job made of a shell script (without its first line)."""
        path = self.work / f"job-{secrets.token_hex(4)}.sh"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return self.run("sbatch", "--parsable", *options, str(path), as_uid=as_uid).strip()

    def wait_for(self, job: str, *states: str, field: str = "%T", deadline_s: float = READY_S) -> str:
        """The state in which the job is (or another field of squeue's format), once it is one of those.

        Raises:
            ClusterError: if it takes longer.
        """
        until_s = time.monotonic() + deadline_s
        while (state := self.state_of(job, field)) not in states:
            if time.monotonic() > until_s:
                raise ClusterError(f"job {job} is {state or 'unknown'}, not {' or '.join(states)}\n{self.last_words()}")
            time.sleep(POLL_S)
        return state

    def state_of(self, job: str, field: str = "%T") -> str:
        """As squeue spells it; empty if it knows none."""
        with contextlib.suppress(ClusterError):
            return self.run("squeue", "--noheader", "--states=all", f"--format={field}", "--jobs", job).partition("\n")[0]
        return ""

    def pid_of(self, daemon: str) -> int:
        """Of ``munged``, ``slurmctld``, ``n1`` or ``n2``: to be stopped by a test."""
        return self._daemons[daemon].pid

    def kill(self, daemon: str) -> None:
        """Ends a daemon at once. Jobs of a node live on: their parents are ``slurmstepd``."""
        self._daemons[daemon].kill()
        self._daemons[daemon].wait(timeout=END_S)

    def start(self, daemon: str) -> None:
        """Starts ``munged``, ``slurmctld``, ``n1`` or ``n2``."""
        command = {
            "munged": [*as_user(_munge_uid()), "munged", "--foreground", *_munge_options(self.folder)],
            "slurmctld": ["slurmctld", "-D"],
        }.get(daemon, ["slurmd", "-D", "-N", daemon])
        self.launch(daemon, *command)

    def launch(self, daemon: str, *command: str) -> None:
        """Starts something that is to end with the cluster; what it says goes into ``log``."""
        with (self.folder / "log" / f"{daemon}.out").open("ab") as log:
            self._daemons[daemon] = subprocess.Popen(
                [*DIE_WITH_US, *self._entrance, *command],
                env=self.environment,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def forget_jobs(self) -> None:
        """What MinJobAge does in time, at once: the controller starts anew without its memory. No job may run."""
        self.kill("slurmctld")
        self.launch("slurmctld", "slurmctld", "-D", "-c")
        self.wait_until_idle()

    def open_namespace(self) -> None:
        """Makes our interpreter reachable for everybody, if it is not."""
        places = private_places()
        if not places:
            return
        holder = subprocess.Popen(
            [*DIE_WITH_US, "unshare", "--mount", "sh", "-c", opening_script(places, self.folder / "stash")],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self._daemons["namespace"] = holder
        with holder.stdout or contextlib.nullcontext() as answer:
            if answer is None or answer.readline() != b"open\n":
                raise ClusterError(f"no mount namespace in which {', '.join(map(str, places))} can be entered")
        self._entrance.extend(["nsenter", f"--mount=/proc/{holder.pid}/ns/mnt"])

    def cancel_all(self) -> None:
        """Ends every job of everybody."""
        for partition in PARTITIONS:
            self.run("scancel", "--quiet", f"--partition={partition}", deadline_s=END_S)

    def wait_until_idle(self, deadline_s: float = READY_S) -> None:
        """Waits until both nodes are free.

        Raises:
            ClusterError: if they do not become so.
        """
        until_s = time.monotonic() + deadline_s
        while True:
            with contextlib.suppress(ClusterError):
                if self.run("sinfo", "--noheader", "--Node", "--partition=debug", "--format=%t").split() == ["idle"] * len(
                    NODES
                ):
                    return
            if time.monotonic() > until_s:
                raise ClusterError(f"the nodes did not become idle\n{self.last_words()}")
            time.sleep(POLL_S)

    def last_words(self) -> str:
        """The last lines of every log."""
        logs = sorted((self.folder / "log").iterdir())
        return "\n".join(f"{path.name}:\n{path.read_text(errors='replace')[-1500:]}" for path in logs)

    def processes(self) -> set[int]:
        """Daemons, steps, jobs and commands of this cluster: what carries its mark, and whatever descends from that."""
        mark = f"{_MARK}={self.folder}".encode()
        parents, found = {}, set()
        for path in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if path.name.isdigit():
                    parents[int(path.name)] = int((path / "stat").read_text().rpartition(")")[2].split()[1])
                    if mark in (path / "environ").read_bytes().split(b"\0"):
                        found.add(int(path.name))
        while new := {pid for pid, parent in parents.items() if parent in found and pid not in found}:
            found |= new
        return found

    def end(self) -> None:
        """Ends jobs, daemons and what is left of either, in this order."""
        with contextlib.suppress(ClusterError, subprocess.TimeoutExpired):
            self.cancel_all()
        until_s = time.monotonic() + END_S
        while left := self.processes():
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if time.monotonic() > until_s:
                raise ClusterError(f"still there: {left}")
            time.sleep(POLL_S)
        for daemon in self._daemons.values():
            daemon.wait(timeout=END_S)


def as_user(uid: int) -> list[str]:
    """What a command is put behind to run as another user, group of the same number, without groups and capabilities."""
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"] if uid != os.geteuid() else []


@contextlib.contextmanager
def running_cluster(*, node_timeout_s: int = 30, with_accounting: bool = False) -> Iterator[Cluster]:
    """A cluster with two idle nodes of 24 processors each (as Slurm believes).

    Args:
        node_timeout_s: after how long without an answer a node is down.
        with_accounting: starts a database and its daemon too, so that `sacct` answers; see `accounting.py`.
    """
    folder = Path(tempfile.mkdtemp(prefix="pardbg-slurm-"))
    cluster = Cluster(folder=folder)
    try:
        _lay_out(folder)
        cluster.open_namespace()
        cluster.start("munged")
        _wait_for_munge(folder)
        ports = free_ports(5)
        conf = _CONF.format(
            host=HOST,
            folder=folder,
            controller_port=ports[0],
            node_ports=f"[{ports[1]},{ports[2]}]",
            node_timeout_s=node_timeout_s,
            accounting=accounting_lines(folder, ports[3])
            if with_accounting
            else "AccountingStorageType=accounting_storage/none",
        )
        (folder / "slurm.conf").write_text(conf)
        if with_accounting:
            start_accounting(cluster, HOST, ports[3], ports[4])
        for daemon in ("slurmctld", *NODES):
            cluster.start(daemon)
        cluster.wait_until_idle()
        yield cluster
    finally:
        cluster.end()
        shutil.rmtree(folder, ignore_errors=True)


def _lay_out(folder: Path) -> None:
    folder.chmod(0o755)
    for name in ("state", "log", "run", "work", "stash", *(f"spool.{node}" for node in NODES)):
        (folder / name).mkdir(mode=0o755)
    (folder / "work").chmod(0o1777)
    munge = folder / "munge"
    munge.mkdir(mode=0o755)
    key = munge / "key"
    key.write_bytes(secrets.token_bytes(1024))
    key.chmod(0o400)
    for path in (munge, key):
        shutil.chown(path, "munge", "munge")


def _munge_uid() -> int:
    return Path("/etc/munge").stat().st_uid


def _munge_options(folder: Path) -> list[str]:
    places = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
    return [f"--{option}={folder}/munge/{name}" for option, name in places.items()]


def _wait_for_munge(folder: Path) -> None:
    until_s = time.monotonic() + READY_S
    while not (folder / "munge" / "socket").exists():
        if time.monotonic() > until_s:
            raise ClusterError("munged made no socket")
        time.sleep(POLL_S)


def free_ports(count: int) -> list[int]:
    """Ports nobody listens on now. They are asked for all at once, so that they differ."""
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]
