"""The way to the nodes of a Slurm job by its own srun: as its owner, and of a het job one srun for each component."""

import os
from pwd import getpwuid

from pardbg.collectors.jobs.slurm.job import SlurmJob
from pardbg.watchdog.errors import InputError
from pardbg.watchdog.transport.remote import collect_command
from pardbg.watchdog.transport.srun import join_sruns, through_srun
from pardbg.watchdog.transport.way import Way


def through_slurm(job: SlurmJob, remote_command: str | None) -> Way:
    """To the nodes that can be reached; there must be one.

    Raises:
        InputError: if root cannot become its owner.
    """
    number, command = str(job.srun_job_id), collect_command(remote_command)
    program = (*become_owner(job.uid), "srun")
    left = dict.fromkeys(job.reachable_nodes)
    ways = []
    for part in job.parts:
        nodes = [node for node in part.nodes if node in left]
        if nodes:
            ways.append(through_srun(number, nodes, command, (*program, f"--het-group={part.het_offset}")))
        for node in nodes:  # one that several components share is asked once
            del left[node]
    return join_sruns(ways) if ways else through_srun(number, left, command, program)


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
