"""The jobs of this machine and what their ranks run: the census, and one more child that looks at memory maps.

Cost: that of the census, and 100 ms and a few ms a rank where jobs run. Deadline: the census's own, and `_RANKS_S` for all
ranks together. Ranks are read, not touched.
"""

import time
from collections.abc import Iterable

from pardbg.collectors.jobs.choices import name_worlds
from pardbg.collectors.jobs.process import Census
from pardbg.collectors.jobs.worlds import find_worlds
from pardbg.collectors.node import own_children
from pardbg.collectors.node.answers import RankLook, RanksRequest, RankTarget
from pardbg.collectors.node.surroundings import Denied, JobHere, Processes
from pardbg.watchdog.model.evidence import Absence
from pardbg.watchdog.model.names import AbsenceReason
from pardbg.watchdog.model.world import RankProcess

_RANKS_S = 3.0
_MOST_RANKS = 64


def describe_processes(census: Census) -> Processes:
    """The jobs, and who would not be looked into."""
    worlds = find_worlds(census)
    silent = frozenset(process.pid for process in census.processes if process.is_silent)
    looks = _look_at(rank for world in worlds for rank in world.ranks if rank.pid not in silent)
    denied = [process for process in census.processes if process.is_denied and process.is_python]
    return Processes(
        jobs=tuple(
            JobHere(name=name, world=world, looks=tuple(looks[rank.pid] for rank in world.ranks if rank.pid in looks))
            for name, world in zip(name_worlds(worlds), worlds, strict=True)
        ),
        denied=Denied(count=len(denied), uids=tuple(sorted({process.look.uid for process in denied if process.look}))),
        silent=tuple(sorted(silent)),
        problem=_problem(census),
    )


def _look_at(ranks: Iterable[RankProcess]) -> dict[int, RankLook]:
    """By pid; without those that gave no answer."""
    targets = tuple(RankTarget(pid=rank.pid, started_ticks=rank.started_ticks, is_at_home=rank.is_at_home) for rank in ranks)[
        :_MOST_RANKS
    ]
    if not targets:
        return {}
    until_s = time.monotonic() + _RANKS_S
    try:
        with own_children.running_trier() as child:
            own_children.ask(child, RanksRequest(ranks=targets))
            return {answer.pid: answer for answer in own_children.hear(child, until_s) if isinstance(answer, RankLook)}
    except OSError:
        return {}


def _problem(census: Census) -> str:
    """Why nobody could be looked into; empty if the others could."""
    absences = (item.observation for item in census.evidence if isinstance(item.observation, Absence))
    whole = (absence.detail for absence in absences if absence.reason is not AbsenceReason.DENIED)
    return next(whole, "") if census.processes and all(process.is_silent for process in census.processes) else ""
