"""Which of the runs that have ended the user means. Pure."""

import shlex
from collections.abc import Sequence

from pardbg.collectors.ended.runs import Run
from pardbg.collectors.jobs.choices import describe_age
from pardbg.collectors.jobs.job_ids import JobName, read_job_name, write_job_name
from pardbg.collectors.jobs.query import JobQuery
from pardbg.watchdog.errors import AmbiguousJobError
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.names import JobSource

NS_PER_S = 1_000_000_000


class ChosenRun(Noun, frozen=True, kw_only=True):
    """The run that is meant, under which name the report speaks of it, and how many of that name have ended.

    ``later_count``: how many of them came later, and ended before any of their ranks had joined the others.
    """

    run: Run
    source: JobSource
    job_id: str
    count: int
    later_count: int = 0


def select_run(runs: Sequence[Run], query: JobQuery, now_ns: int) -> ChosenRun | None:
    """The newest run that is meant; of a job that was restarted the newest attempt whose ranks had met; None if none is meant.

    What a restart in vain leaves tells nothing of why there was one.

    Raises:
        AmbiguousJobError: if others that are meant ran at the same time.
    """
    worlds = [run.world for run in runs]
    name = read_job_name(query.job, worlds) if query.job is not None else None
    meant = [run for run, world in zip(runs, worlds, strict=True) if name is None or name.means(world)]
    meant = [run for run in meant if query.world_size in {None, run.key.world_size}]
    if query.pids:
        meant = [run for run in meant if set(query.pids) <= {rank.folder.pid for rank in run.ranks}]
    if not meant:
        return None
    vain = _vain_restarts(meant)
    meant = meant[: len(meant) - vain]
    newest = meant[-1]
    rivals = [run for run in meant if run.ended_ns > newest.started_ns or run is newest]
    if len(rivals) > 1:
        what = f"job {query.job}" if query.job is not None else "what is meant"
        raise AmbiguousJobError(f"{what} has {len(rivals)} worlds, which have ended", describe_runs(rivals, runs, now_ns))
    source, job_id = (name.source, name.name) if name is not None else _own_name(newest)
    return ChosenRun(run=newest, source=source, job_id=job_id, count=len(meant), later_count=vain)


def _vain_restarts(meant: Sequence[Run]) -> int:
    """How many of the last runs are restarts in which no two ranks have met."""
    vain = 0
    for run in reversed(meant[1:]):
        if not run.key.attempt or any(rank.is_member for rank in run.ranks):
            return vain
        vain += 1
    return vain


def describe_runs(chosen: Sequence[Run], runs: Sequence[Run], now_ns: int) -> tuple[str, ...]:
    """A command for each, and a few words to know it by."""
    commands = [command_for(run, runs) for run in chosen]
    width = max(map(len, commands), default=0)
    return tuple(f"{command:{width}}  # {_describe(run, now_ns)}" for command, run in zip(commands, chosen, strict=True))


def command_for(run: Run, runs: Sequence[Run]) -> str:
    """The command that means this run: by a name that no other one of its time has, else by one of its processes."""
    worlds = [other.world for other in runs]
    for source, own in run.job_ids:
        name = JobName(source=source, name=own)
        if [other for other, world in zip(runs, worlds, strict=True) if name.means(world)][-1:] == [run]:
            rivals = [other for other in runs if other is not run and other.ended_ns > run.started_ns]
            if not any(name.means(other.world) for other in rivals):
                return f"pardbg scan --job {shlex.quote(write_job_name(source, own, worlds))}"
    return f"pardbg scan --pid {run.ranks[0].folder.pid}"


def describe_ago(run: Run, now_ns: int) -> str:
    """``ended 40 s ago``."""
    return f"ended {describe_age((now_ns - run.ended_ns) / NS_PER_S)} ago"


def _describe(run: Run, now_ns: int) -> str:
    count, size = len(run.ranks), run.key.world_size
    ranks = f"{count} rank{'s' if count > 1 else ''}" if size in {None, count} else f"{count} of {size} ranks here"
    return f"{ranks}, {describe_ago(run, now_ns)}"


def _own_name(run: Run) -> tuple[JobSource, str]:
    return run.job_ids[0] if run.job_ids else (JobSource.LOCAL, f"pid {run.ranks[0].folder.pid}")
