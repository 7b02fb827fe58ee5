"""A world made of the processes that the user names, where none of them says which rank it is. Pure."""

from collections.abc import Sequence

from pardbg.collectors.jobs.process import Census, JobProcess
from pardbg.collectors.jobs.worlds import describe_rank
from pardbg.watchdog.errors import InputError
from pardbg.watchdog.model.world import World

_GIVE_RANKS = "give --pid for each rank, in the order of the ranks"


def require_process(pid: int, census: Census) -> JobProcess:
    """The process of that number, which must be one we may look into.

    Raises:
        InputError: if there is none, or it is hidden from us.
    """
    process = next((process for process in census.processes if process.pid == pid), None)
    if process is None:
        raise InputError(f"no process {pid} runs here{_describe_inner(pid, census)}", remedy=_GIVE_RANKS)
    if process.look is not None and process.look.is_denied:
        raise InputError(
            f"process {pid} may not be looked into: it runs as uid {process.look.uid}",
            remedy="run pardbg as that user or as root",
        )
    return process


def make_world(processes: Sequence[JobProcess], world_size: int | None, census: Census) -> World:
    """The processes are ranks 0, 1, ... in the given order.

    Args:
        processes: those the user names.
        world_size: how many ranks the world has, if more than these.
        census: where they were found.

    Raises:
        InputError: if one cannot be a rank, or there are more than the world has.
    """
    for process in processes:
        if process.is_ended or not process.is_python:
            what = "has ended" if process.is_ended else "runs no Python"
            raise InputError(
                f"process {process.pid} ({process.stat.name}) belongs to no world and {what}"
                + _describe_inner(process.pid, census),
                remedy=_GIVE_RANKS,
            )
        if process.is_launcher:
            raise InputError(f"process {process.pid} is a launcher that has started no rank here", remedy=_GIVE_RANKS)
    if len(processes) == 1 and world_size is None and not processes[0].is_silent:
        raise InputError(f"process {processes[0].pid} does not say which rank it is", remedy=f"{_GIVE_RANKS}, or --world 1")
    if world_size is not None and world_size < len(processes):
        raise InputError(f"{len(processes)} processes for a world of {world_size}", remedy="leave --world out")
    return World(
        world_size=world_size or len(processes),
        ranks=tuple(describe_rank(rank, process, None, census) for rank, process in enumerate(processes)),
    )


def _describe_inner(pid: int, census: Census) -> str:
    """Where the number is one of a container's inside, the number it has here."""
    outer = [
        process.pid
        for process in census.processes
        if process.look and len(process.look.namespace_pids) > 1 and process.look.namespace_pids[-1] == pid
    ]
    return f" (inside a container it is the number of {', '.join(map(str, outer[:5]))})" if outer else ""
