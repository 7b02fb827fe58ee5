"""Which way leads to the nodes of a job: this machine alone, Slurm's srun, ssh, or kubectl into its pods."""

import os
import shutil
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pwd import getpwuid

from pardbg.collectors.jobs.job_ids import JobName, read_job_name
from pardbg.collectors.jobs.kubernetes.find import find_kubernetes_job
from pardbg.collectors.jobs.kubernetes.job import KubernetesJob
from pardbg.collectors.jobs.slurm.find import find_slurm_job
from pardbg.collectors.jobs.slurm.job import SlurmJob
from pardbg.collectors.jobs.slurm.node_names import expand_nodes, fold_nodes
from pardbg.watchdog.errors import InputError, ParseError
from pardbg.watchdog.model.evidence import Absence
from pardbg.watchdog.model.names import AbsenceReason, JobSource
from pardbg.watchdog.transport.kubectl import Pod, through_kubectl
from pardbg.watchdog.transport.remote import collect_command
from pardbg.watchdog.transport.srun import through_srun
from pardbg.watchdog.transport.ssh import through_ssh
from pardbg.watchdog.transport.way import Way

_SLURM_S = 15.0
_SRUN = "srun"
_KUBERNETES_S = 20.0
_NO_CLUSTER = frozenset(
    {AbsenceReason.NOT_INSTALLED, AbsenceReason.SWITCHED_OFF, AbsenceReason.GONE, AbsenceReason.UNSUPPORTED}
)
_POD = "KUBERNETES_SERVICE_HOST"  # every container of a pod has it


class Via(str, Enum):
    """How to reach the ranks; ``auto`` finds out."""

    AUTO = "auto"
    LOCAL = "local"
    SRUN = "srun"
    SSH = "ssh"
    KUBECTL = "kubectl"


class _UnknownToSlurmError(Exception):
    """Slurm answers, and knows no such job."""


@dataclass(frozen=True)
class Route:
    """Where to look. ``way`` None: on this machine. The jobs: what Slurm or Kubernetes says of the job, if it was asked.

    ``problem``: why Slurm knows no such job, if it was asked and said so.
    """

    way: Way | None = None
    slurm_job: SlurmJob | None = None
    kubernetes_job: KubernetesJob | None = None
    problem: str = ""

    @property
    def unreached(self) -> dict[str, Absence]:
        """The nodes (of Kubernetes: the pods) of the job that are not asked, and why."""
        if self.way is not None and self.kubernetes_job is not None:
            return self.kubernetes_job.unreached
        if self.way is None or self.slurm_job is None:
            return {}
        if self.way.name != _SRUN:  # the user named the nodes
            return {}
        asked = frozenset(self.way.nodes)
        told = {node.name: f": {node.reason}" for node in self.slurm_job.ill_nodes if node.reason}
        return {
            node: Absence(reason=AbsenceReason.UNREACHABLE, detail=f"Slurm says that it does not answer{told.get(node, '')}")
            for node in self.slurm_job.nodes
            if node not in asked
        }


def choose_route(
    via: Via, job: str | None, hosts: str | None, remote_command: str | None, *, within_s: float = _SLURM_S
) -> Route:
    """Decides from what the user gave and from what Slurm or Kubernetes says.

    Args:
        via: as the user says.
        job: the id, as given.
        hosts: names for ssh, folded or not.
        remote_command: what starts pardbg on the nodes, if it is not what runs here.
        within_s: how long the asking may take.

    Raises:
        InputError: if the way cannot be gone.
    """
    if hosts is not None and (via not in {Via.AUTO, Via.SSH} or not hosts.strip()):
        raise InputError(f"--hosts {hosts!r} with --via {via.value}", remedy="give names, n[01-64] or a,b,c; they are for ssh")
    if via is Via.LOCAL:
        return Route()
    name = read_job_name(job, ()) if job else None
    if via is Via.KUBECTL or (via is Via.AUTO and not hosts and name is not None and name.source is JobSource.KUBERNETES):
        return _ask_kubernetes(via, name, remote_command)
    try:
        slurm_job = None if hosts else _ask_slurm(via, job, within_s)
    except _UnknownToSlurmError as error:
        return Route(problem=str(error))
    if via is Via.SSH or (via is Via.AUTO and hosts):
        return _through_ssh(hosts, slurm_job, remote_command)
    is_out_of_reach = slurm_job is None or slurm_job.state.is_over or not slurm_job.reachable_nodes
    if slurm_job is None or is_out_of_reach or (via is Via.AUTO and _is_here(slurm_job.reachable_nodes)):
        return Route(slurm_job=slurm_job)
    return Route(way=_through_srun(slurm_job, remote_command), slurm_job=slurm_job)


def _through_ssh(hosts: str | None, slurm_job: SlurmJob | None, remote_command: str | None) -> Route:
    names = _read_hosts(hosts) if hosts else slurm_job.nodes if slurm_job else ()
    if not names:
        raise InputError("--via ssh needs the names of the hosts", remedy="give --hosts n[01-64], or the id of a Slurm job")
    return Route(way=through_ssh(names, collect_command(remote_command)), slurm_job=slurm_job)


def _ask_kubernetes(via: Via, name: JobName | None, remote_command: str | None) -> Route:
    """Into the pods that run; to this machine if it is one of them, or if nobody here knows the cluster."""
    if name is None or name.source is not JobSource.KUBERNETES:
        raise InputError("--via kubectl needs the name of a job of Kubernetes", remedy="pardbg scan --job k8s:train/exp7")
    found = find_kubernetes_job(name.name, time.monotonic() + _KUBERNETES_S)
    if isinstance(found, Absence):
        if via is Via.AUTO and (found.reason in _NO_CLUSTER or _POD in os.environ):
            return Route()
        raise InputError(f"Kubernetes: {found.detail}", remedy="see kubectl get pods --show-labels, or give --via local")
    if via is Via.AUTO and _POD in os.environ and _own_pod() in {fate.pod.name for fate in found.fates}:
        return Route(kubernetes_job=found)
    if not found.running:
        return Route(kubernetes_job=found)
    pods = [Pod(name=fate.pod.name, namespace=found.namespace, container=fate.container) for fate in found.running]
    return Route(way=through_kubectl(pods, collect_command(remote_command) if remote_command else None), kubernetes_job=found)


def _own_pod() -> str:
    return os.environ.get("POD_NAME") or socket.gethostname()


def _read_hosts(text: str) -> tuple[str, ...]:
    try:
        return expand_nodes(text)
    except ParseError as error:
        raise InputError(f"--hosts: {error}", remedy="write n[01-64] or a,b,c") from error


def _ask_slurm(via: Via, job: str | None, within_s: float) -> SlurmJob | None:
    name = read_job_name(job, ()) if job else None
    if name is None or name.source is not JobSource.SLURM:
        if via is Via.SRUN:
            raise InputError("--via srun needs the id of a Slurm job", remedy="pardbg scan --job 1234 --via srun")
        return None
    if via is Via.AUTO and shutil.which("scontrol") is None and shutil.which("squeue") is None:
        return None
    found = find_slurm_job(name.name, time.monotonic() + min(within_s, _SLURM_S))
    if isinstance(found, SlurmJob):
        return found
    if via is Via.AUTO and found.reason is AbsenceReason.GONE:
        raise _UnknownToSlurmError(found.detail)
    if via is Via.AUTO and found.reason is AbsenceReason.NOT_INSTALLED:
        return None
    raise InputError(f"Slurm: {found.detail}", remedy="look at the id, or give --via ssh --hosts or --via local")


def _is_here(nodes: Sequence[str]) -> bool:
    own = socket.gethostname()
    return len(nodes) == 1 and nodes[0] in {own, own.partition(".")[0]}


def _through_srun(job: SlurmJob, remote_command: str | None) -> Way:
    if job.het_groups:
        told = f"Slurm job {job.spelled} is heterogeneous: srun would have to be given its parts one by one"
        raise InputError(told, remedy=f"pardbg scan --job {job.spelled} --via ssh --hosts {fold_nodes(job.reachable_nodes)}")
    command = collect_command(remote_command)
    return through_srun(str(job.srun_job_id), job.reachable_nodes, command, program=(*become_owner(job.uid), "srun"))


def become_owner(uid: int | None) -> tuple[str, ...]:
    """What root puts before srun: only the owner of a job may start a step in it.

    Raises:
        InputError: if this machine does not know the owner.
    """
    if os.geteuid() != 0 or uid is None or uid == 0:
        return ()
    try:
        group = getpwuid(uid).pw_gid
    except KeyError:
        told = f"the job belongs to uid {uid}, which has no account here, and only its owner may look at it through srun"
        raise InputError(told, remedy="run pardbg as its owner, or give --via ssh") from None
    return ("setpriv", f"--reuid={uid}", f"--regid={group}", "--init-groups")
