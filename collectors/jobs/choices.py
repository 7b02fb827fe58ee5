"""A line for each of several worlds: the exact command that selects it, and a few words to know it by. Pure."""

import shlex
from collections.abc import Sequence

from pardbg.collectors.jobs.family import Family
from pardbg.collectors.jobs.job_ids import JobName, write_job_name
from pardbg.collectors.jobs.process import Census
from pardbg.watchdog.model.world import World

_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86400


def describe_choices(candidates: Sequence[World], worlds: Sequence[World], census: Census) -> tuple[str, ...]:
    """One shell command for each, the words behind a ``#``.

    Args:
        candidates: the worlds to choose from.
        worlds: all that run here: an id that two of them answer to selects neither.
        census: where they were found.
    """
    commands = [f"pardbg scan {_selector(world, worlds)}" for world in candidates]
    width = max(map(len, commands), default=0)
    return tuple(
        f"{command:{width}}  # {_describe(world, census)}" for command, world in zip(commands, candidates, strict=True)
    )


def name_worlds(worlds: Sequence[World]) -> tuple[str, ...]:
    """For each world the option that a user would type: its first id, or its lowest rank's pid where it has none."""
    return tuple(
        f"--job {shlex.quote(write_job_name(*world.job_ids[0], worlds))}" if world.job_ids else f"--pid {world.ranks[0].pid}"
        for world in worlds
    )


def _selector(world: World, worlds: Sequence[World]) -> str:
    for source, name in world.job_ids:
        if [other for other in worlds if JobName(source=source, name=name).means(other)] == [world]:
            return f"--job {shlex.quote(write_job_name(source, name, worlds))}"
    return f"--pid {world.ranks[0].pid}"


def _describe(world: World, census: Census) -> str:
    count, size = len(world.ranks), world.world_size
    ranks = f"{count} rank{'s' if count > 1 else ''}" if size in {None, count} else f"{count} of {size} ranks here"
    age_s = (census.ticks - min(rank.started_ticks for rank in world.ranks)) / census.ticks_per_s
    first = Family(census.processes).get(world.ranks[0].pid)
    program = first.look.command.program if first and first.look else ""
    attempt = f"attempt {world.attempt}" if world.attempt else ""
    words = (ranks, attempt, f"started {describe_age(age_s)} ago", program or (first.stat.name if first else ""))
    return ", ".join(word for word in words if word)


def describe_age(age_s: float) -> str:
    """``40 s``, ``3 h``."""
    for unit_s, unit in ((_DAY_S, "days"), (_HOUR_S, "h"), (_MINUTE_S, "min")):
        if age_s >= 2 * unit_s:
            return f"{age_s / unit_s:.0f} {unit}"
    return f"{max(0.0, age_s):.0f} s"
