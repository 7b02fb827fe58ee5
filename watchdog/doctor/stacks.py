"""py-spy, and whether it knows the Pythons that the ranks run. Pure."""

from collections.abc import Iterator

from pardbg.collectors.node.answers import PySpyTrial
from pardbg.collectors.node.surroundings import Surroundings
from pardbg.watchdog.doctor.check import Check, State
from pardbg.watchdog.doctor.tracing import untried
from pardbg.watchdog.outputs.phrases import name_ranks

_NO_STACKS = "no Python stacks: the verdict has only process states and a recorder to go by"
_UPGRADE = "pip install --upgrade py-spy"


def check_py_spy(surroundings: Surroundings) -> Iterator[Check]:
    """Whether it is there and takes the stack of a process of our own."""
    py_spy = surroundings.trial.py_spy
    if py_spy is None:
        yield untried("py-spy")
    elif not py_spy.path:
        yield _blocked(
            "not found, neither beside this Python nor on PATH",
            "install it beside pardbg",
            "pip install py-spy",
        )
    elif not py_spy.version:
        yield _blocked(f"{py_spy.path} does not run", "install it again", _UPGRADE)
    elif py_spy.problem:
        is_unread = surroundings.trial.memory is not None and bool(surroundings.trial.memory.file_error)
        words = "may not read a process of our own" if is_unread else "took no stack of a process of our own"
        yield _blocked(f"{py_spy.version} {words}", "see memory" if is_unread else py_spy.problem, None)
    else:
        newest = f", knows Python up to 3.{py_spy.newest_python}" if py_spy.newest_python is not None else ""
        yield Check(name="py-spy", state=State.OK, seen=f"{py_spy.version}{newest}, works")


def check_pythons(surroundings: Surroundings) -> Iterator[Check]:
    """The interpreters of the ranks against what py-spy knows."""
    py_spy = surroundings.trial.py_spy
    if py_spy is None or not py_spy.version:
        return
    for job in surroundings.processes.jobs:
        ranks = {rank.pid: rank.rank for rank in job.world.ranks}
        minors = {ranks[look.pid]: look.python for look in job.looks if look.python is not None and look.pid in ranks}
        if not minors:
            yield Check(
                name="rank-python", state=State.UNKNOWN, seen=f"{job.name}: its ranks do not show which Python they run"
            )
        else:
            yield _compare(job.name, minors, py_spy)


def _compare(name: str, minors: dict[int, int], py_spy: PySpyTrial) -> Check:
    versions = " and ".join(f"3.{minor}" for minor in sorted(set(minors.values())))
    if py_spy.newest_python is None:
        seen = f"{name}: Python {versions}; which ones py-spy {py_spy.version} knows cannot be told"
        return Check(name="rank-python", state=State.UNKNOWN, seen=seen, command=_UPGRADE)
    too_new = sorted(rank for rank, minor in minors.items() if minor > py_spy.newest_python)
    if not too_new:
        return Check(name="rank-python", state=State.OK, seen=f"{name}: Python {versions}, which py-spy knows")
    return Check(
        name="rank-python",
        state=State.BLOCKS,
        seen=f"{name}: Python 3.{minors[too_new[0]]} in {name_ranks(too_new)}; py-spy {py_spy.version} knows "
        f"Python up to 3.{py_spy.newest_python}",
        cost="no Python stacks of these ranks",
        remedy="install a newer py-spy",
        command=_UPGRADE,
    )


def _blocked(seen: str, remedy: str, command: str | None) -> Check:
    return Check(name="py-spy", state=State.BLOCKS, seen=seen, cost=_NO_STACKS, remedy=remedy, command=command)
