"""One short look at the GPUs of a job, as a scan takes it: beside its other looks, so that nobody waits for it.

Cost: one child of 35 ms and 15 MB; the job notices nothing. Deadline: `WITHIN_S`. Where no rank has a GPU open nothing is done
at all. Utilisation is the driver's own mean over up to a second, so a few samples in a second tell as much as a second can.
"""

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from pardbg.collectors.gpu.evidence import describe_devices
from pardbg.collectors.gpu.gpus import Gpus
from pardbg.watchdog.model.evidence import Absence, Evidence
from pardbg.watchdog.model.names import AbsenceReason, CollectorName
from pardbg.watchdog.model.process import ProcessSample
from pardbg.watchdog.model.world import RankProcess

WITHIN_S = 2.0
PERIOD_S = 0.2
_LEAST_POINTS = 4
CONTROL_NODE = Path("/dev/nvidiactl")

Finish = Callable[[], tuple[Evidence, ...]]


@contextlib.contextmanager
def looking_at_devices(
    ranks: Sequence[RankProcess], looked: Iterable[Evidence], sample: int, held: Gpus | None = None
) -> Iterator[Finish]:
    """Begins to look; what it yields gives the evidence once it is called, at the latest `WITHIN_S` after the beginning.

    Args:
        ranks: of the job, on this machine.
        looked: what was seen of their processes in this sample: whether they have a GPU open.
        sample: number of the look.
        held: GPUs that somebody reads all the time; then no child is started.
    """
    users = users_of_devices(ranks, looked)
    if held is not None:
        yield lambda: describe_devices(held, users, sample)
        return
    if not users:
        yield tuple
        return
    until_s = time.monotonic() + WITHIN_S
    with Gpus(period_s=PERIOD_S, silence_s=WITHIN_S, opening_s=WITHIN_S) as gpus:
        yield lambda: _finish(gpus, users, sample, until_s)


def users_of_devices(
    ranks: Sequence[RankProcess], looked: Iterable[Evidence], control_node: Path = CONTROL_NODE
) -> list[RankProcess]:
    """The ranks that have a GPU open, and with them those that could not be looked into; none if none has."""
    looks = [item for item in looked if item.source is CollectorName.HOST and item.rank is not None]
    using = {item.rank for item in looks if isinstance(item.observation, ProcessSample) and item.observation.uses_device}
    full = {item.rank for item in looks if isinstance(item.observation, ProcessSample)}
    full -= {item.rank for item in looks if _is_denial(item)}
    unseen = {rank.rank for rank in ranks} - full
    if not using and not (unseen and control_node.exists()):
        return []
    return [rank for rank in ranks if rank.rank in using | unseen]


def _is_denial(item: Evidence) -> bool:
    return isinstance(item.observation, Absence) and item.observation.reason is AbsenceReason.DENIED


def _finish(gpus: Gpus, users: Sequence[RankProcess], sample: int, until_s: float) -> tuple[Evidence, ...]:
    while time.monotonic() < until_s and not _is_enough(gpus):
        time.sleep(PERIOD_S / 2)
    return describe_devices(gpus, users, sample)


def _is_enough(gpus: Gpus) -> bool:
    if gpus.absence() is not None:
        return not gpus.is_opening
    return all(card.problem or len(gpus.series(card.key)) >= _LEAST_POINTS for card in gpus.latest())
