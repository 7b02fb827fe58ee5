"""Stacks that a program had faulthandler write, where nobody may look at its process. Cost: see `rank_outputs.py`.

``faulthandler.dump_traceback_later`` and ``faulthandler.register`` write to standard error, or to a file that stays
open. What stands there is read; nobody is asked for more here (`probe/asked_stacks.py` asks).
"""

from collections.abc import Collection, Iterator, Sequence

from msgspec.structs import replace

from pardbg.collectors.live.rank_outputs import WITHIN_S, RankOutput, read_outputs
from pardbg.watchdog.model.evidence import Evidence
from pardbg.watchdog.model.names import CollectorName
from pardbg.watchdog.model.world import RankProcess


def read_faulthandler_stacks(
    ranks: Sequence[RankProcess],
    wanted: Collection[int] | None = None,
    *,
    not_before_s: float = 0.0,
    within_s: float = WITHIN_S,
    command: Sequence[str] | None = None,
) -> list[Evidence]:
    """Reads the last dump in the files that ranks write; the newest, if several hold one.

    A dump counts only at the end of a file that this rank alone writes: what was printed later shows that the program moved on.

    Args:
        ranks: all ranks of one world on this machine, so that shared files are known as such.
        wanted: the ranks whose stacks are missing; None for all.
        not_before_s: epoch seconds at which the rank is known to have stood still: an older file shows another moment.
        within_s: how long all of it may take, seconds.
        command: what a child of the reader runs.

    Returns:
        One `Stack` at most a rank, observed when its file was last written, and `Absence` for what could not be read.
    """
    chosen = {rank.rank for rank in ranks if wanted is None or rank.rank in wanted}
    if not chosen:
        return []
    found = read_outputs(ranks, CollectorName.STACKS, is_wide=True, within_s=within_s, command=command)
    newest: dict[int, Evidence] = {}
    for output in sorted(found.outputs, key=lambda output: output.read.mtime_ns):
        if output.read.mtime_ns >= not_before_s * 1e9:
            newest |= {item.rank: item for item in _stack(output) if item.rank is not None}
    stacks = [newest[rank] for rank in sorted(chosen & newest.keys())]
    return stacks + [item for item in found.absences if item.rank is None or item.rank in chosen - newest.keys()]


def _stack(output: RankOutput) -> Iterator[Evidence]:
    owner, stack = output.written.owner, output.read.stack
    if stack is not None and owner is not None and not output.read.signed_by - {owner.rank}:
        yield Evidence(
            source=CollectorName.STACKS,
            rank=owner.rank,
            host=owner.host,
            observed_at=output.written_at,
            observation=replace(stack, pid=owner.pid),
            origin=output.written.file.path,
        )
