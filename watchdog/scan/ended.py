"""Diagnosing a job right after its end, from what the probes of its ranks have left: one sample, then the same judge.

Cost: that of `collectors/ended/look.py`. Nothing is running any more that could be disturbed.
"""

import os
import socket
import time
from collections.abc import Sequence

from msgspec.structs import replace

from pardbg.collectors.ended.look import evidence_of, find_ended_runs, read_run
from pardbg.collectors.ended.runs import Run
from pardbg.collectors.ended.selection import ChosenRun, command_for, describe_ago, select_run
from pardbg.collectors.jobs.query import ChosenJob, JobQuery
from pardbg.collectors.live.kernel_log import read_kernel_log
from pardbg.collectors.live.moment import as_rfc3339, now_rfc3339
from pardbg.collectors.live.start_time import started_ns
from pardbg.watchdog.errors import InputError
from pardbg.watchdog.judge.judge import Circumstances, judge
from pardbg.watchdog.model.evidence import Evidence
from pardbg.watchdog.model.world import EndedProcess, World
from pardbg.watchdog.scan.description import absent_elsewhere
from pardbg.watchdog.scan.scan import Progress, Scanned, Settings
from pardbg.watchdog.store.view import EvidenceView


def scan_ended(query: JobQuery, settings: Settings, progress: Progress) -> Scanned | None:
    """Diagnoses the newest ended run that is meant; None if there is none.

    Raises:
        AmbiguousJobError: if several that ran at one time are meant.
    """
    began_s = time.monotonic()
    progress("looking for what an ended job has left")
    chosen = select_run(find_ended_runs(os.environ), query, time.time_ns())
    if chosen is None:
        return None
    progress(f"reading what {len(chosen.run.ranks)} ranks have left")
    found = read_run(chosen.run)
    left = (*evidence_of(found, chosen.run), *found.of_routing(), *_kernel_log(chosen.run))
    unseen = absent_elsewhere(replace(chosen.run.world, evidence=left), "this machine")
    evidence = (found.describe(chosen.job_id), *unseen, *left)
    circumstances = Circumstances(
        decided_at=now_rfc3339(),
        source=chosen.source,
        sampled_at=(as_rfc3339(chosen.run.ended_ns),),
        notes=_notes(chosen),
        rules=settings.rules,
    )
    report = judge(EvidenceView.of(evidence), circumstances)
    return Scanned(replace(report, took_s=round(time.monotonic() - began_s, 3)), evidence)


def _kernel_log(run: Run) -> tuple[Evidence, ...]:
    host = next((rank.own.host for rank in run.ranks if rank.own.host), None) or socket.gethostname()
    return read_kernel_log(host, min(rank.started_ns for rank in run.ranks))


def name_newest(error: InputError) -> InputError:
    """The same error; where a job has ended on this machine, it names the command that diagnoses it."""
    runs = find_ended_runs(os.environ)
    if not runs:
        return error
    newest = runs[-1]
    told = f"{error}; the last job here {describe_ago(newest, time.time_ns())}"
    return InputError(told, remedy=command_for(newest, runs))


def add_ended_ranks(chosen: ChosenJob) -> ChosenJob:
    """A world that lives, with what those of its ranks have left that have ended: how they did, and their last dumps."""
    world = chosen.world
    if len(world.ranks) == world.world_size:
        return chosen
    run = _part_of(world, find_ended_runs(os.environ))
    if run is None:
        return chosen
    found = read_run(run)
    known = {ended.rank: ended for ended in world.ended}
    for rank in run.ranks:
        before = known.get(rank.rank)
        code = before.exit_code if before is not None and before.exit_code is not None else found.exit_code(rank)
        known[rank.rank] = EndedProcess(rank=rank.rank, pid=rank.folder.pid, exit_code=code)
    ended = tuple(known[number] for number in sorted(known))
    return replace(chosen, world=replace(world, ended=ended, evidence=(*world.evidence, *evidence_of(found, run))))


def _part_of(world: World, runs: Sequence[Run]) -> Run | None:
    """The ended ranks of a living world: of the same user, store, size and attempt, alive when the others had started."""
    living, owners = {rank.rank for rank in world.ranks}, {rank.uid for rank in world.ranks}
    for run in reversed(runs):
        is_same = (run.key.store, run.key.world_size, run.key.attempt or 0) == (
            world.store,
            world.world_size,
            world.attempt or 0,  # probes count from 0, environments may say nothing
        )
        ended = (rank for rank in run.ranks if rank.rank not in living and rank.folder.uid in owners)
        ranks = tuple(rank for rank in ended if rank.seen_ns >= _started_ns(world))
        if is_same and ranks:
            return replace(run, ranks=ranks)
    return None


def _started_ns(world: World) -> int:
    return max(started_ns(rank.started_ticks) for rank in world.ranks)


def _notes(chosen: ChosenRun) -> tuple[str, ...]:
    ago = describe_ago(chosen.run, time.time_ns())
    several = f"it is the newest of {chosen.count} that have ended under this name" if chosen.count > 1 else ""
    told = f"the job has {ago}: this is one sample, of what its ranks have left"
    times = "once" if chosen.later_count == 1 else f"{chosen.later_count} times"
    vain = f"it was started again {times}, and no rank met the others" if chosen.later_count else ""
    return tuple(filter(None, (told, several, vain)))
