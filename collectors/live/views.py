"""Which ranks see the same files under the same names: a file is read once for all of them.

Cost: two links of ``/proc`` for each rank in another mount namespace, which cannot block. Leaves nothing behind.
"""

import os
from collections.abc import Iterable

from pardbg.collectors.inside import RankRoot
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.world import RankProcess

_LINKS = ("ns/mnt", "root")


class View(Noun, frozen=True, kw_only=True):
    """What a path means: below our own root, or ``inside`` that of a rank. ``uid`` is its user, ``whose`` the process."""

    inside: RankRoot | None = None
    uid: int = 0
    whose: RankRoot | None = None


def find_views(ranks: Iterable[RankProcess]) -> dict[int, View]:
    """By rank; of ranks with one root the first stands for all."""
    known: dict[tuple[object, ...], View] = {}
    return {rank.rank: known.setdefault(_sign(rank), _view(rank)) for rank in ranks}


def _view(rank: RankProcess) -> View:
    process = RankRoot(pid=rank.pid, started_ticks=rank.started_ticks)
    return View(inside=None if rank.is_at_home else process, uid=rank.uid, whose=process)


def _sign(rank: RankProcess) -> tuple[object, ...]:
    """The same for ranks that see the same."""
    if rank.is_at_home:
        return (rank.uid,)
    try:
        return (rank.uid, *(os.readlink(f"/proc/{rank.pid}/{name}") for name in _LINKS))  # noqa: PTH115 - no path
    except OSError:
        return (rank.rank,)
