"""Which way leads to the nodes of a job: this machine alone, Slurm's srun, or ssh."""

import os
import shutil
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pwd import getpwuid

from pardbg.collectors.jobs.job_ids import read_job_name
from pardbg.collectors.jobs.slurm.find import find_slurm_job
from pardbg.collectors.jobs.slurm.job import SlurmJob
from pardbg.collectors.jobs.slurm.node_names import expand_nodes
from pardbg.watchdog.errors import InputError, ParseError
from pardbg.watchdog.model.evidence import Absence
from pardbg.watchdog.model.names import AbsenceReason, JobSource
from pardbg.watchdog.transport.remote import collect_command
from pardbg.watchdog.transport.srun import through_srun
from pardbg.watchdog.transport.ssh import through_ssh
from pardbg.watchdog.transport.way import Way

_SLURM_S = 15.0


class Via(str, Enum):
    """How to reach the ranks; ``auto`` finds out."""

    AUTO = "auto"
    LOCAL = "local"
    SRUN = "srun"
    SSH = "ssh"


@dataclass(frozen=True)
class Route:
    """Where to look. ``way`` None: on this machine. ``slurm_job``: what Slurm says of the job, if it was asked."""

    way: Way | None = None
    slurm_job: SlurmJob | None = None

    @property
    def unreached(self) -> dict[str, Absence]:
        """The nodes of the job that are not asked, and why."""
        if self.way is None or self.slurm_job is None:
            return {}
        asked = frozenset(self.way.nodes)
        told = {node.name: f": {node.reason}" for node in self.slurm_job.ill_nodes if node.reason}
        return {
            node: Absence(reason=AbsenceReason.UNREACHABLE, detail=f"Slurm says that it does not answer{told.get(node, '')}")
            for node in self.slurm_job.nodes
            if node not in asked
        }


def choose_route(via: Via, job: str | None, hosts: str | None, remote_command: str | None) -> Route:
    """Decides from what the user gave and from what Slurm says.

    Args:
        via: as the user says.
        job: the id, as given.
        hosts: names for ssh, folded or not.
        remote_command: what starts pardbg on the nodes, if it is not what runs here.

    Raises:
        InputError: if the way cannot be gone.
    """
    if via is Via.LOCAL:
        return Route()
    slurm_job = _ask_slurm(via, job) if via is not Via.SSH or not hosts else None
    if via is Via.SSH or (via is Via.AUTO and hosts):
        names = _read_hosts(hosts) if hosts else slurm_job.nodes if slurm_job else ()
        if not names:
            raise InputError("--via ssh needs the names of the hosts", remedy="give --hosts n[01-64], or the id of a Slurm job")
        return Route(way=through_ssh(names, collect_command(remote_command)), slurm_job=slurm_job)
    if slurm_job is None or slurm_job.state.is_over or not slurm_job.reachable_nodes:
        return Route(slurm_job=slurm_job)
    if via is Via.AUTO and _is_here(slurm_job.reachable_nodes):
        return Route(slurm_job=slurm_job)
    return Route(way=_through_srun(slurm_job, remote_command), slurm_job=slurm_job)


def _read_hosts(text: str) -> tuple[str, ...]:
    try:
        return expand_nodes(text)
    except ParseError as error:
        raise InputError(f"--hosts: {error}", remedy="write n[01-64] or a,b,c") from error


def _ask_slurm(via: Via, job: str | None) -> SlurmJob | None:
    name = read_job_name(job, ()) if job else None
    if name is None or name.source is not JobSource.SLURM:
        if via is Via.SRUN:
            raise InputError("--via srun needs the id of a Slurm job", remedy="pardbg scan --job 1234 --via srun")
        return None
    if via is Via.AUTO and shutil.which("scontrol") is None and shutil.which("squeue") is None:
        return None
    found = find_slurm_job(name.name, time.monotonic() + _SLURM_S)
    if isinstance(found, SlurmJob):
        return found
    if via is Via.AUTO and found.reason in {AbsenceReason.NOT_INSTALLED, AbsenceReason.GONE}:
        return None
    raise InputError(f"Slurm: {found.detail}", remedy="look at the id, or give --via ssh --hosts or --via local")


def _is_here(nodes: Sequence[str]) -> bool:
    own = socket.gethostname()
    return len(nodes) == 1 and nodes[0] in {own, own.partition(".")[0]}


def _through_srun(job: SlurmJob, remote_command: str | None) -> Way:
    command = collect_command(remote_command)
    return through_srun(str(job.srun_job_id), job.reachable_nodes, command, program=(*_become(job.uid), "srun"))


def _become(uid: int | None) -> tuple[str, ...]:
    """What root puts before srun: only the owner of a job may start a step in it."""
    if os.geteuid() != 0 or uid in {None, 0}:
        return ()
    assert uid is not None  # noqa: S101 - for mypy
    return ("setpriv", f"--reuid={uid}", f"--regid={getpwuid(uid).pw_gid}", "--init-groups")
