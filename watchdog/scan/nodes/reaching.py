"""Which way leads to the nodes of a job: this machine alone, Slurm's srun, ssh, kubectl into its pods, or agents."""

import os
import shutil
import socket
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from enum import Enum

from pardbg.collectors.jobs.job_ids import JobName, read_job_name
from pardbg.collectors.jobs.kubernetes.find import find_kubernetes_job
from pardbg.collectors.jobs.kubernetes.job import KubernetesJob
from pardbg.collectors.jobs.slurm.find import find_slurm_job
from pardbg.collectors.jobs.slurm.job import SlurmJob
from pardbg.watchdog.errors import InputError
from pardbg.watchdog.model.evidence import Absence
from pardbg.watchdog.model.names import AbsenceReason, JobSource
from pardbg.watchdog.scan.nodes.hosts import read_hosts
from pardbg.watchdog.scan.nodes.slurm_steps import check_step
from pardbg.watchdog.scan.nodes.through_agents import AgentChoice, AgentsRoute, choose_agents
from pardbg.watchdog.scan.nodes.through_slurm import through_slurm
from pardbg.watchdog.transport.kubectl import Pod, through_kubectl
from pardbg.watchdog.transport.remote import collect_command
from pardbg.watchdog.transport.ssh import through_ssh
from pardbg.watchdog.transport.way import Way

_SLURM_S = 15.0
_SHARE = 0.6
"""Of the time there is: if the scheduler does not answer, there must be some left for this machine."""
_SRUN = "srun"
_KUBERNETES_S = 20.0
_NO_CLUSTER = frozenset(
    {AbsenceReason.NOT_INSTALLED, AbsenceReason.SWITCHED_OFF, AbsenceReason.GONE, AbsenceReason.UNSUPPORTED}
)
_SILENCE = frozenset({AbsenceReason.TIMED_OUT, AbsenceReason.UNREACHABLE, AbsenceReason.SKIPPED})
_POD = "KUBERNETES_SERVICE_HOST"  # every container of a pod has it


class Via(str, Enum):
    """How to reach the ranks; ``auto`` finds out."""

    AUTO = "auto"
    LOCAL = "local"
    SRUN = "srun"
    SSH = "ssh"
    KUBECTL = "kubectl"
    AGENTS = "agents"


class _UntoldError(Exception):
    """A scheduler does not say where the job runs: it knows none, or (``absence``) does not answer."""

    def __init__(self, problem: str, absence: Absence | None = None) -> None:
        super().__init__(problem)
        self.absence = absence


@dataclass(frozen=True)
class Route:
    """Where to look. Neither ``way`` nor ``agents``: on this machine.

    The jobs: what Slurm or Kubernetes says of the job, if it was asked.

    ``problem``: why the scheduler does not say where the job runs. ``unseen``: what may have the job and could not be asked,
    by host (empty for the scheduler): if no rank of it is here either, nothing can be said. ``targets``: what ssh is given for
    each host, if it leads there.
    """

    way: Way | None = None
    agents: AgentsRoute | None = None
    slurm_job: SlurmJob | None = None
    kubernetes_job: KubernetesJob | None = None
    problem: str = ""
    unseen: dict[str, Absence] = field(default_factory=dict)
    targets: dict[str, str] = field(default_factory=dict)

    @property
    def is_slurms_alone(self) -> bool:
        """Whether there is only Slurm's word, and what is left: the job does not run, or ends and no other way was named."""
        if self.slurm_job is None:
            return False
        has_way = self.way is not None or self.agents is not None
        return not has_way if self.slurm_job.is_ending else not self.slurm_job.state.holds_nodes

    @property
    def unreached(self) -> dict[str, Absence]:
        """The nodes (of Kubernetes: the pods) of the job that are not asked, and why."""
        if self.agents is not None:
            return self.agents.unreached
        if self.way is not None and self.kubernetes_job is not None:
            return self.kubernetes_job.unreached
        if self.way is None or self.slurm_job is None:
            return {}
        if self.way.name != _SRUN:  # the user named the nodes
            return {}
        return _ill(self.slurm_job, self.way.nodes)


def choose_route(  # noqa: PLR0913 - what the user may say of it
    via: Via,
    job: str | None,
    hosts: str | None,
    remote_command: str | None,
    *,
    agents: AgentChoice | None = None,
    within_s: float = _SLURM_S,
) -> Route:
    """Decides from what the user gave and from what Slurm or Kubernetes says.

    Args:
        via: as the user says.
        job: the id, as given.
        hosts: names for ssh, folded or not.
        remote_command: what starts pardbg on the nodes, if it is not what runs here.
        agents: which agents to ask, and how.
        within_s: how long the scan may take, of which this is a part.

    Raises:
        InputError: if the way cannot be gone.
    """
    if hosts is not None and (via not in {Via.AUTO, Via.SSH} or not hosts.strip()):
        raise InputError(f"--hosts {hosts!r} with --via {via.value}", remedy="give names, n[01-64] or a,b,c; they are for ssh")
    if via is Via.LOCAL:
        return Route()
    name = read_job_name(job, ()) if job else None
    if via is Via.AGENTS or (via is Via.AUTO and job and not hosts and agents is not None and agents.named):
        return _through_agents(agents or AgentChoice(), name, within_s)
    try:
        if via is Via.KUBECTL or (via is Via.AUTO and not hosts and name is not None and name.source is JobSource.KUBERNETES):
            return _ask_kubernetes(via, name, remote_command, within_s)
        slurm_job = None if hosts else _ask_slurm(via, name, within_s)
    except _UntoldError as error:
        return Route(problem=str(error), unseen={"": error.absence} if error.absence is not None else {})
    if via is Via.SSH or (via is Via.AUTO and hosts):
        return _through_ssh(hosts, slurm_job, remote_command)
    return _through_slurm(via, slurm_job, remote_command) if slurm_job is not None else Route()


def _through_slurm(via: Via, job: SlurmJob, remote_command: str | None) -> Route:
    """By srun; on this machine if the job has ended or is ending, or runs nowhere else."""
    if job.state.is_over or job.is_ending or (via is Via.AUTO and _is_here(job.reachable_nodes)):
        return Route(slurm_job=job)
    if not job.reachable_nodes:
        problem = "no node of the job answers, says Slurm" if job.nodes else ""
        return Route(slurm_job=job, problem=problem, unseen=_ill(job, ()))
    return Route(way=through_slurm(job, remote_command), slurm_job=job)


def _through_agents(choice: AgentChoice, name: JobName | None, within_s: float) -> Route:
    """Slurm is asked only where the agents of the job are; where it does not say, all that are named are asked."""
    try:
        job = _ask_slurm(Via.AUTO, name, within_s)
    except _UntoldError as error:
        if choice.named is None:
            raise InputError(str(error), remedy="name the agents: --agents n[01-64]") from error
        job = None
    if job is not None and not (job.state.holds_nodes or job.is_ending):
        return Route(slurm_job=job)
    return Route(agents=choose_agents(choice, job), slurm_job=job)


def _through_ssh(hosts: str | None, slurm_job: SlurmJob | None, remote_command: str | None) -> Route:
    names = read_hosts(hosts) if hosts else {node: node for node in slurm_job.nodes} if slurm_job else {}
    if not names:
        raise InputError("--via ssh needs the names of the hosts", remedy="give --hosts n[01-64], or the id of a Slurm job")
    return Route(way=through_ssh(names, collect_command(remote_command)), slurm_job=slurm_job, targets=names)


def _ask_kubernetes(via: Via, name: JobName | None, remote_command: str | None, within_s: float) -> Route:
    """Into the pods that run; to this machine if it is one of them, or if nobody here knows the cluster."""
    if name is None or name.source is not JobSource.KUBERNETES:
        raise InputError("--via kubectl needs the name of a job of Kubernetes", remedy="pardbg scan --job k8s:train/exp7")
    found = find_kubernetes_job(name.name, time.monotonic() + min(_SHARE * within_s, _KUBERNETES_S))
    if isinstance(found, Absence):
        if via is Via.AUTO and (found.reason in _NO_CLUSTER or _POD in os.environ):
            return Route()
        if found.reason in _SILENCE:
            raise _UntoldError(f"Kubernetes does not answer: {found.detail}", found)
        raise InputError(f"Kubernetes: {found.detail}", remedy="see kubectl get pods --show-labels, or give --via local")
    if via is Via.AUTO and _POD in os.environ and _own_pod() in {fate.pod.name for fate in found.fates}:
        return Route(kubernetes_job=found)
    if not found.running:
        return Route(kubernetes_job=found)
    pods = [Pod(name=fate.pod.name, namespace=found.namespace, container=fate.container) for fate in found.running]
    return Route(way=through_kubectl(pods, collect_command(remote_command) if remote_command else None), kubernetes_job=found)


def _own_pod() -> str:
    return os.environ.get("POD_NAME") or socket.gethostname()


def _ask_slurm(via: Via, name: JobName | None, within_s: float) -> SlurmJob | None:
    if name is None or name.source is not JobSource.SLURM:
        if via is Via.SRUN:
            raise InputError("--via srun needs the id of a Slurm job", remedy="pardbg scan --job 1234 --via srun")
        return None
    if via is Via.AUTO and shutil.which("scontrol") is None and shutil.which("squeue") is None:
        return None
    found = find_slurm_job(name.name, time.monotonic() + min(_SHARE * within_s, _SLURM_S))
    if isinstance(found, SlurmJob):
        check_step(found)
        return found
    if via is Via.AUTO and found.reason is AbsenceReason.GONE:
        raise _UntoldError(found.detail)
    if via is Via.AUTO and found.reason is AbsenceReason.NOT_INSTALLED:
        return None
    if found.reason in _SILENCE:
        raise _UntoldError(f"Slurm does not answer: {found.detail}", found)
    raise InputError(f"Slurm: {found.detail}", remedy="look at the id, or give --via ssh --hosts or --via local")


def _is_here(nodes: Sequence[str]) -> bool:
    own = socket.gethostname()
    return len(nodes) == 1 and nodes[0] in {own, own.partition(".")[0]}


def _ill(job: SlurmJob, asked: Collection[str]) -> dict[str, Absence]:
    """What Slurm says of the nodes of a job that are not asked."""
    told = {node.name: f": {node.reason}" for node in job.ill_nodes if node.reason}
    return {
        node: Absence(reason=AbsenceReason.UNREACHABLE, detail=f"Slurm says that it does not answer{told.get(node, '')}")
        for node in job.nodes
        if node not in frozenset(asked)
    }
