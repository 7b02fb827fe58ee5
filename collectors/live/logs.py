"""What the logs of a live job tell, where the output of its ranks goes to files. Cost: see `rank_outputs.py`.

An unsigned line of a file that several write is nobody's: a rank is only told by ``[rankN]:`` there. Of an attempt that has
ended nothing is told, as far as the launcher noted its end.
"""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from pardbg.collectors.live.rank_outputs import WITHIN_S, RankOutput, read_outputs
from pardbg.watchdog.model.evidence import Evidence, LogTraceback
from pardbg.watchdog.model.log_event import LauncherFailure, LogSeen
from pardbg.watchdog.model.names import CollectorName
from pardbg.watchdog.model.world import RankProcess


def read_logs(
    ranks: Sequence[RankProcess], *, within_s: float = WITHIN_S, command: Sequence[str] | None = None
) -> list[Evidence]:
    """Reads the end of each file that a rank has as standard output or error.

    A shared log also tells of ranks that have ended and are not among ``ranks``.

    Args:
        ranks: all ranks of one world on this machine.
        within_s: how long all of it may take, seconds.
        command: what a child of the reader runs.

    Returns:
        `LogTraceback`, `LogSeen` and, for what could not be read in time or at all, `Absence`.
    """
    found = read_outputs(ranks, CollectorName.RANK_LOG, is_wide=False, within_s=within_s, command=command)
    return [item for output in found.outputs for item in (*_tracebacks(output), *_events(output))] + list(found.absences)


def _tracebacks(output: RankOutput) -> Iterator[Evidence]:
    for item in output.read.tracebacks:
        rank = item.rank if item.rank is not None else _owner(output)
        if rank is not None:
            yield _evidence(output, rank, item.traceback)


def _events(output: RankOutput) -> Iterator[Evidence]:
    """What launchers report is left out: of processes that live their looks tell."""
    for item in output.read.events:
        events = tuple(event for event in item.seen.events if not isinstance(event, LauncherFailure))
        if events:
            rank = item.rank if item.rank is not None else _owner(output)
            yield _evidence(output, rank, replace(item.seen, events=events))


def _owner(output: RankOutput) -> int | None:
    """Whose an unsigned line is."""
    owner = output.written.owner
    return None if owner is None or output.read.signed_by - {owner.rank} else owner.rank


def _evidence(output: RankOutput, rank: int | None, observation: LogTraceback | LogSeen) -> Evidence:
    return Evidence(
        source=CollectorName.RANK_LOG,
        rank=rank,
        host=output.written.writers[0].host,
        observed_at=output.written_at,
        observation=observation,
        origin=output.written.file.path,
    )
