"""The page of a rank in another mount namespace, or in a folder that its user chose, opened by a child process.

Who walks there may be kept for ever. Cost: one child of about 120 ms and 20 MB, which is ended at once. Deadline: `WITHIN_S`,
for which the caller waits. Leaves nothing behind.
"""

import contextlib
import os

from pardbg.collectors.inside import RankRoot
from pardbg.collectors.live.probe.place import folder_of
from pardbg.collectors.probe.places import PAGE_FILE
from pardbg.collectors.reading import Reader, Task
from pardbg.collectors.reading_job import PageHeld, PageRequest, ProbeRequest
from pardbg.watchdog.model.world import RankProcess

WITHIN_S = 3.0
_PAGE = "page"


class OnDiskError(OSError):
    """The file is there, but on a disk: reading it may block."""


def open_inside_page(rank: RankProcess, name: str = PAGE_FILE) -> int | None:
    """A descriptor for reading of the page, or of another file of its probe in memory; None if none may be believed.

    Raises:
        OnDiskError: if it does not lie in memory.
    """
    folder = folder_of(rank.own_pid, rank.started_ticks, rank.own_uid, rank.recorder)
    if folder is None:
        return None
    probe = ProbeRequest(
        folder=folder,
        pid=rank.own_pid,
        started_ticks=rank.started_ticks,
        uid=rank.uid,
        inside=None if rank.is_at_home else RankRoot(pid=rank.pid, started_ticks=rank.started_ticks),
    )
    with Reader(deadline_s=WITHIN_S) as reader:
        reply = reader.ask([Task(request=PageRequest(probe=probe, name=name), path=_PAGE)], within_s=WITHIN_S).get(_PAGE)
        if isinstance(reply, PageHeld) and reply.is_on_disk:
            raise OnDiskError(f"{name} of the probe of rank {rank.rank} lies on a disk")
        if isinstance(reply, PageHeld) and reply.descriptor is not None and reader.pids:
            with contextlib.suppress(OSError):
                return os.open(f"/proc/{reader.pids[0]}/fd/{reply.descriptor}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    return None
