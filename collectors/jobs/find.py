"""The front door: which processes of this machine are the ranks of the job that the user means."""

from pathlib import Path

from msgspec.structs import replace

from pardbg.collectors.jobs.census import PROC, take_census
from pardbg.collectors.jobs.process import JobProcess
from pardbg.collectors.jobs.query import ChosenJob, JobQuery
from pardbg.collectors.jobs.selection import select_world

_NODE = "SLURMD_NODENAME"


def find_world(query: JobQuery, *, proc: Path = PROC) -> ChosenJob:
    """Takes a census and selects. Cost and deadline: those of `census.py`.

    Raises:
        AmbiguousJobError: if the query means several worlds; its ``choices`` are the commands that mean one.
        InputError: if it means none.
    """
    census = take_census(proc, host=query.node or None)
    if query.node:
        census = replace(census, processes=tuple(one for one in census.processes if _may_be_on(query.node, one)))
    return select_world(census, query)


def _may_be_on(node: str, process: JobProcess) -> bool:
    return process.look is None or process.look.environment.get(_NODE, node) == node
