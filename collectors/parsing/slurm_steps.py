"""``scontrol --oneliner show step`` and ``scontrol listpids``: the steps of a job, and the tasks of a node."""

import re

from pardbg.collectors.parsing.slurm_record import SlurmStep
from pardbg.collectors.parsing.slurm_values import read_number, read_text, read_time
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.base import Noun

_STEP = re.compile(
    r"^StepId=\S*?\.(?P<step>\S+) (?:.*? )??StartTime=(?P<start>\S+) .*?State=(?P<state>\S+) .*?"
    r"NodeList=(?P<nodes>\S*) .*?Tasks=(?P<tasks>\d+) Name=(?P<name>.*?) Network=",
    re.MULTILINE | re.ASCII,
)
_PIDS_HEAD = ["PID", "JOBID", "STEPID", "LOCALID", "GLOBALID"]


class SlurmTask(Noun, frozen=True, kw_only=True):
    """A process of this node that Slurm started. The ids are None for what is no task (the batch script, helpers of a task)."""

    pid: int
    job_id: int
    step: str
    local_id: int | None
    global_id: int | None


def parse_steps(text: str) -> tuple[SlurmStep, ...]:
    """The steps that run; none is a right answer (a job between two of them)."""
    return tuple(
        SlurmStep(
            step=match["step"],
            name=match["name"],
            raw_state=match["state"],
            node_list=read_text(match["nodes"]),
            n_tasks=read_number(match["tasks"]),
            started_at=read_time(match["start"]),
        )
        for match in _STEP.finditer(text)
    )


def parse_pids(text: str) -> tuple[SlurmTask, ...]:
    """The processes of ``scontrol listpids``, which speaks of the node it runs on alone.

    Raises:
        ParseError: if it is not its table.
    """
    head, *lines = [line.split() for line in text.splitlines() if line.strip()] or [[]]
    if head != _PIDS_HEAD:
        raise ParseError("not the table of scontrol listpids")
    return tuple(_parse_task(columns) for columns in lines)


def _parse_task(columns: list[str]) -> SlurmTask:
    numbers = [read_number(columns[index]) for index in (0, 1)] if len(columns) == len(_PIDS_HEAD) else [None, None]
    if numbers[0] is None or numbers[1] is None:
        raise ParseError("not a line of scontrol listpids")
    return SlurmTask(
        pid=numbers[0],
        job_id=numbers[1],
        step=columns[2],
        local_id=read_number(columns[3]),
        global_id=read_number(columns[4]),
    )
