"""Which children of ranks have a Python stack worth taking: loader workers, compilers, helpers."""

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pardbg.collectors.live.identity import read_living
from pardbg.watchdog.model.evidence import Evidence
from pardbg.watchdog.model.process import ChildProcess, ProcessSample
from pardbg.watchdog.model.world import RankProcess

_MOST_A_RANK = 8
_MOST_IN_ALL = 64
_PYTHON = re.compile(r"(?:.*/)?(?:python|pypy)[\d.]*(?: \(deleted\))?$")


@dataclass(frozen=True)
class PythonChild:
    """A child of a rank, and when it started."""

    rank: RankProcess
    child: ChildProcess
    started_ticks: int


def choose_children(ranks: Sequence[RankProcess], looked: Iterable[Evidence]) -> list[PythonChild]:
    """Those that run Python or the very program of their rank, as forked ones do; one a rank in turn, up to the limits."""
    by_rank = {item.rank: item.observation for item in looked if isinstance(item.observation, ProcessSample)}
    pids = {rank.pid for rank in ranks}  # a rank may have started other ranks
    lists = {rank.rank: _python_children(rank, by_rank[rank.rank], pids) for rank in ranks if rank.rank in by_rank}
    turns = [lists[rank.rank][turn] for turn in range(_MOST_A_RANK) for rank in ranks if turn < len(lists.get(rank.rank, ()))]
    return turns[:_MOST_IN_ALL]


def _python_children(rank: RankProcess, sample: ProcessSample, pids_of_ranks: set[int]) -> list[PythonChild]:
    own = _program_of(rank.pid)
    family = {rank.pid, *(child.pid for child in sample.children)}
    found: list[PythonChild] = []
    for child in (child for child in sample.children if child.pid not in pids_of_ranks):
        program, stat = _program_of(child.pid), read_living(child.pid)
        is_python = program is not None and (program == own or _PYTHON.match(program) is not None)
        if is_python and stat is not None and stat.parent_pid in family:  # else its number is another process's by now
            found.append(PythonChild(rank=rank, child=child, started_ticks=stat.started_ticks))
    return found


def _program_of(pid: int) -> str | None:
    """The name the kernel has for the program; the link is not followed."""
    try:
        return os.readlink(f"/proc/{pid}/exe")  # noqa: PTH115 - must not be resolved
    except OSError:
        return None
