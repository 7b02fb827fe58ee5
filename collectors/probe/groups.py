"""Notices every process group that is made, however it is made, and writes down who belongs to it.

All ways to make a group - `init_process_group`, `new_group`, `split_group`, device meshes - end by entering its members into
one dictionary of torch. A dictionary of our own in its place tells. Cost: one line of JSON a group.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

from .folder import append_json
from .harmless import harmless

_NAME = "_pg_group_ranks"

Listener = Callable[[Any, Mapping[int, int]], None]


class NoticedGroups(dict[Any, Any]):
    """torch's dictionary from process groups to their members; ``listener`` hears of each new one."""

    listener: Listener | None = None

    def __setitem__(self, group: Any, members: Any) -> None:
        """Enters a group, then tells."""
        super().__setitem__(group, members)
        if self.listener is not None:
            harmless(self.listener)(group, members)


def notice_groups(c10d: ModuleType, listener: Listener) -> None:
    """Hears of every group that `torch.distributed` has made and will make.

    Raises:
        AttributeError: if this torch keeps its groups elsewhere.
    """
    present = getattr(c10d, _NAME)
    noticed = NoticedGroups(present)
    noticed.listener = listener
    setattr(c10d, _NAME, noticed)
    if c10d._world.pg_group_ranks is not noticed:  # noqa: SLF001 - torch has no public way
        setattr(c10d, _NAME, present)
        raise AttributeError("torch's groups are not where they were in 2.4 to 2.13")
    for group, members in present.items():
        harmless(listener)(group, members)


def write_group(path: str, c10d: ModuleType, group: Any, members: Mapping[int, int]) -> None:
    """Adds a group to the file of groups: members are global ranks, in the order of their group ranks."""
    ordered = sorted(members, key=lambda rank: members[rank])
    world: Any = c10d._world  # noqa: SLF001 - as above
    content: dict[str, object] = {
        "name": str(world.pg_names.get(group, "")),
        "desc": str(getattr(group, "group_desc", "")),
        "backend": str((world.pg_map.get(group) or ("",))[0]),
        "runs": fold(ordered),
        "created_ns": time.time_ns(),
    }
    append_json(path, content)


def fold(ranks: Sequence[int]) -> list[list[int]]:
    """Ranks as ``[start, stride, count]``, in their order: a world of 30,000 is one of them."""
    runs: list[list[int]] = []
    for rank in ranks:
        run = runs[-1] if runs else None
        if run is not None and run[2] == 1:
            run[1], run[2] = rank - run[0], 2
        elif run is not None and rank == run[0] + run[1] * run[2]:
            run[2] += 1
        else:
            runs.append([rank, 1, 1])
    return runs
