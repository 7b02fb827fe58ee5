"""What leads a person to the nodes that a scan has reached: the same way, in the words of a command line."""

import shlex
import socket

from pardbg.collectors.jobs.kubernetes.job import KubernetesJob
from pardbg.collectors.jobs.slurm.job import SlurmJob
from pardbg.watchdog.model.reach import HOST, NO_WAY, Reach
from pardbg.watchdog.scan.nodes.reaching import Route
from pardbg.watchdog.scan.nodes.through_slurm import become_owner


def reach_of(route: Route) -> Reach:
    """The words for the nodes of a route."""
    if route.way is None:
        return NO_WAY
    if route.kubernetes_job is not None:
        return over_kubectl(route.kubernetes_job)
    if route.slurm_job is not None and route.way.name == "srun":
        return over_srun(route.slurm_job)
    return over_ssh(route.targets)


def over_ssh(targets: dict[str, str]) -> Reach:
    """As the user's own configuration of ssh says. ``targets``: what it is given for each host."""
    return Reach(before="ssh", takes_line=True, names=targets, here=socket.gethostname(), question=f"ssh {HOST} uptime")


def over_srun(job: SlurmJob) -> Reach:
    """A step of one task beside the job's own, as its owner."""
    words = (*become_owner(job.uid), "srun", f"--jobid={job.srun_job_id}", "--overlap", "-N1", "-n1", "--mem=0", "-w")
    parts = {node: f"--het-group={part.het_offset}" for part in job.parts for node in part.nodes}
    return Reach(before=shlex.join(words), options=parts, here=socket.gethostname(), question=f"scontrol show node {HOST}")


def over_kubectl(job: KubernetesJob) -> Reach:
    """Into the containers of the job's pods."""
    containers = {fate.pod.name: shlex.join(("-c", fate.container)) for fate in job.fates if fate.container}
    return Reach(
        before=shlex.join(("kubectl", "exec", "-n", job.namespace)),
        after="--",
        options=containers,
        here=socket.gethostname(),
        question=f"kubectl describe pod -n {shlex.quote(job.namespace)} {HOST}",
    )
