"""The members of process groups, as the ranks' probes wrote them down, put into the recordings of the same sample. Pure.

gloo's recorder names no members, NCCL's only those of groups that were used; a probe names all when they are made.
"""

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from pardbg.watchdog.model.evidence import Evidence, FlightRecording
from pardbg.watchdog.model.recording import GroupConfig


def name_members(evidence: Iterable[Evidence], groups: Mapping[int, Sequence[GroupConfig]]) -> list[Evidence]:
    """The same evidence; recordings know the members of the groups of their rank.

    What the recorder itself says wins if it names members. Of several groups with one name the rank means the last one it made.

    Args:
        evidence: anything; only recordings that are switched on are completed.
        groups: by rank, in the order in which they were made, those of others included.
    """
    return [_complete(item, groups.get(item.rank, ())) if item.rank is not None else item for item in evidence]


def _complete(item: Evidence, made: Sequence[GroupConfig]) -> Evidence:
    seen = item.observation
    if not made or not isinstance(seen, FlightRecording) or not seen.recording.is_switched_on:
        return item
    known = {config.name: config for config in made if _has_member(config, item.rank)}
    known |= {config.name: config for config in seen.recording.configs if config.runs}
    return replace(item, observation=replace(seen, recording=replace(seen.recording, configs=tuple(known.values()))))


def _has_member(config: GroupConfig, rank: int | None) -> bool:
    """Without unfolding the runs: a job has many groups."""
    return rank is not None and any(
        rank == start if step == 0 else (rank - start) % step == 0 and 0 <= (rank - start) // step < count
        for start, step, count in config.runs
    )
