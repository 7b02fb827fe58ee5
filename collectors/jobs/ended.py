"""The ranks that belong to this machine and were not found: ended, or not to be seen. Pure.

An ended process has no environment any more, so which rank it was is inferred from its place among the children of those who
started the others. So it is for one that does not answer.
"""

import os
from collections.abc import Sequence

from pardbg.collectors.jobs.family import Family
from pardbg.collectors.jobs.identity import WorldKey
from pardbg.collectors.jobs.members import Members
from pardbg.collectors.jobs.process import JobProcess
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.world import EndedProcess

_MOST_LOCAL_RANKS = 4096
_ONE_LAUNCH_S = 10  # ranks of one launch start within this time


class Vacancies(Noun, frozen=True, kw_only=True):
    """What became of the ranks without a living process that says so.

    Attributes:
        expected: all ranks that belong here; empty if that is not known.
        ended: those whose process has ended.
        silent: those whose process lives and does not answer.
        unseen: those that may be a process which we could not look into.
        hidden: the processes meant by that.
    """

    expected: frozenset[int] = frozenset()
    ended: tuple[EndedProcess, ...] = ()
    silent: dict[int, JobProcess] = {}
    unseen: tuple[int, ...] = ()
    hidden: tuple[JobProcess, ...] = ()


def find_vacancies(key: WorldKey, members: Members, processes: Sequence[JobProcess], ticks_per_s: int) -> Vacancies:
    """Compares the ranks that should be here with those that are."""
    expected = expected_ranks(key, members)
    missing = sorted(expected - members.ranks.keys())
    if not missing:
        return Vacancies(expected=expected)
    family = Family(processes)
    candidates = _candidates(members, family)
    filled = _fill(missing, candidates, members, _ONE_LAUNCH_S * ticks_per_s)
    silent = {rank: process for rank, process in filled.items() if process.is_silent and not process.is_ended}
    hidden = _hidden(members, processes, family, frozenset(process.pid for process in filled.values()))
    unseen = tuple(rank for rank in missing if rank not in filled) if hidden else ()
    certain = _declared_ranks(key, members)
    gone = [rank for rank in missing if rank not in silent and rank not in unseen and (rank in filled or rank in certain)]
    return Vacancies(
        expected=expected,
        ended=tuple(_describe_ended(rank, filled.get(rank)) for rank in gone),
        silent=silent,
        unseen=unseen,
        hidden=hidden if unseen else (),
    )


def expected_ranks(key: WorldKey, members: Members) -> frozenset[int]:
    """The ranks that this machine should have: those declared, and on a loopback address all."""
    everybody = range(min(key.world_size or 0, _MOST_LOCAL_RANKS)) if key.is_loopback else ()
    return _declared_ranks(key, members).union(everybody)


def _declared_ranks(key: WorldKey, members: Members) -> frozenset[int]:
    """The ranks that this machine must have by LOCAL_WORLD_SIZE: a loopback address may be shared with other namespaces."""
    expected: set[int] = set()
    for member in members.ranks.values():
        identity = member.identity
        local_size = identity.local_world_size
        if key.world_size is not None and local_size == key.world_size:
            expected.update(range(min(key.world_size, _MOST_LOCAL_RANKS)))
        elif local_size is not None and identity.local_rank is not None and local_size <= _MOST_LOCAL_RANKS:
            first = identity.rank - identity.local_rank
            expected.update(rank for rank in range(first, first + local_size) if 0 <= rank < (key.world_size or rank + 1))
    return frozenset(expected)


def _candidates(members: Members, family: Family) -> list[JobProcess]:
    """Children of those who started the other ranks, ended or silent, that look like what these children are; oldest first."""
    started = [member.process for member in members.ranks.values()]
    lines = [[process, *family.ancestors(process)] for process in started]
    launchers = {launcher.pid for process in started if (launcher := family.launcher(process))}
    parents = frozenset({process.stat.parent_pid for process in started} | launchers) - {0}
    names = {process.stat.name for line in lines for process in line if process.stat.parent_pid in parents}
    ranks = frozenset(process.pid for process in started)
    return [
        process
        for process in family.children(parents)
        if (process.is_ended or process.is_silent)
        and process.pid not in ranks
        and not process.is_launcher
        and (process.is_python or process.stat.name in names)
    ]


def _fill(missing: list[int], candidates: list[JobProcess], members: Members, window_ticks: int) -> dict[int, JobProcess]:
    """Gives the missing ranks to the candidates in the order of their start; nothing if their numbers differ."""
    starts = [member.process.stat.started_ticks for member in members.ranks.values()]
    near = [
        process
        for process in candidates
        if min(starts) - window_ticks <= process.stat.started_ticks <= max(starts) + window_ticks
    ]
    for chosen in (near, candidates):
        if len(chosen) == len(missing):
            return dict(zip(missing, chosen, strict=True))
    return {}


def _hidden(members: Members, processes: Sequence[JobProcess], family: Family, used: frozenset[int]) -> tuple[JobProcess, ...]:
    """Python processes that could be ranks of this world, for all that we may see of them."""
    users = {member.process.look.uid for member in members.ranks.values() if member.process.look}
    ranks = frozenset(member.process.pid for member in members.ranks.values())
    return tuple(
        process
        for process in processes
        if process.is_python
        and not process.is_ended
        and not process.is_launcher
        and process.pid not in used
        and process.pid not in ranks
        and (process.is_silent or (process.look is not None and process.look.is_denied and process.look.uid in users))
        and not family.has_ancestor(process, ranks)
    )


def _describe_ended(rank: int, process: JobProcess | None) -> EndedProcess:
    if process is None:
        return EndedProcess(rank=rank)
    is_known = process.look is not None and not process.is_denied  # the kernel hides the code from other users
    try:
        exit_code = os.waitstatus_to_exitcode(process.stat.wait_status) if is_known else None
    except ValueError:
        exit_code = None
    return EndedProcess(rank=rank, pid=process.pid, exit_code=exit_code)
