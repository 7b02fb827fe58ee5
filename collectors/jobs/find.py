"""The front door: which processes of this machine are the ranks of the job that the user means."""

from pathlib import Path

from pardbg.collectors.jobs.census import PROC, take_census
from pardbg.collectors.jobs.query import ChosenJob, JobQuery
from pardbg.collectors.jobs.selection import select_world


def find_world(query: JobQuery, *, proc: Path = PROC) -> ChosenJob:
    """Takes a census and selects. Cost and deadline: those of `census.py`.

    Raises:
        AmbiguousJobError: if the query means several worlds; its ``choices`` are the commands that mean one.
        InputError: if it means none.
    """
    return select_world(take_census(proc), query)
