"""What an agent knows of GPUs, put into the looks of scans: it has watched them for a quarter of an hour, a look for a second.

Errors of a driver (Xid) and counters that grow are seen by those alone who were there.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from pardbg.watchdog.agent.server.held import Held
from pardbg.watchdog.model.device import DeviceSeen
from pardbg.watchdog.model.evidence import Evidence
from pardbg.watchdog.model.names import CollectorName
from pardbg.watchdog.model.process import ProcessSample
from pardbg.watchdog.model.watched import WatchedJob
from pardbg.watchdog.scan.nodes.messages import Seen


def with_devices(seen: Seen, sample: int, jobs: Sequence[WatchedJob], held: Held) -> Seen:
    """A look with the agent's own view of the GPUs of those ranks that use one, in place of the look's."""
    users = {
        item.rank for item in seen.evidence if isinstance(item.observation, ProcessSample) and item.observation.uses_device
    }
    mine = [job_part for job in jobs if (job_part := _of(job, users)).ranks] if users else []
    known = {item.rank: item for job in mine for item in held.devices(job, sample) if isinstance(item.observation, DeviceSeen)}
    if not known:
        return seen
    return replace(seen, evidence=(*(item for item in seen.evidence if not _is_replaced(item, known)), *known.values()))


def _of(job: WatchedJob, ranks: set[int | None]) -> WatchedJob:
    return replace(job, ranks=tuple(rank for rank in job.ranks if rank.rank in ranks))


def _is_replaced(item: Evidence, known: dict[int | None, Evidence]) -> bool:
    return item.source is CollectorName.GPU and (item.rank is None or item.rank in known)
