"""What the probes of ranks have counted of their routing, in one look, as evidence.

Cost: that of `vitals/routing_file.py`: some milliseconds a rank, no child process where ranks share our mount namespace. The
ranks notice nothing. A rank without such a file is normal (no probe, or no router), and no absence. Leaves nothing behind.
"""

from collections.abc import Iterator, Sequence

from pardbg.collectors.live.moment import now_rfc3339
from pardbg.collectors.probe.places import ROUTING_FILE
from pardbg.collectors.vitals.routing_file import open_routing
from pardbg.watchdog.model.evidence import Evidence
from pardbg.watchdog.model.names import CollectorName
from pardbg.watchdog.model.world import RankProcess

_TRIES = 3  # a step that is being written tears a look


def read_routing_files(ranks: Sequence[RankProcess]) -> Iterator[Evidence]:
    """One series a rank that has any."""
    for rank in ranks:
        file = open_routing(rank)
        if file is None:
            continue
        try:
            series = next(filter(None, (file.read() for _ in range(_TRIES))), None)
        finally:
            file.close()
        if series is not None and series.rows:
            yield Evidence(
                source=CollectorName.ROUTING,
                rank=rank.rank,
                host=rank.host,
                observed_at=now_rfc3339(),
                observation=series,
                origin=f"{ROUTING_FILE} of pid {rank.pid}",
            )
