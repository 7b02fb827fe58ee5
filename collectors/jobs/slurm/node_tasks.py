"""Which processes of this node are which tasks of a job, as the node's own `slurmstepd` says it.

Cost: one command of 10 to 40 ms, which asks the node alone: it answers while the controller is dead, and to any user.
"""

from pardbg.collectors.jobs.slurm.asking import ask
from pardbg.collectors.jobs.slurm.commands import list_pids
from pardbg.collectors.parsing.slurm_steps import SlurmTask, parse_pids
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.evidence import Absence
from pardbg.watchdog.model.names import AbsenceReason


def find_node_tasks(job_id: int, node: str, until_s: float) -> tuple[SlurmTask, ...] | Absence:
    """The job's processes here; ``empty`` if it runs none. Helpers and the batch script have no task numbers.

    Args:
        job_id: a plain number: an array task's or a component's own.
        node: this node's name in Slurm (``SLURMD_NODENAME``).
        until_s: deadline on the monotonic clock.
    """
    answer = ask(list_pids(job_id, node), until_s)
    if isinstance(answer, Absence):
        return answer
    try:
        return parse_pids(answer.text)
    except ParseError as error:
        return Absence(reason=AbsenceReason.UNREADABLE, detail=f"{answer.command}: {error}")
