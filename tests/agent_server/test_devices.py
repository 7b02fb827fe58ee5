"""What an agent has seen of GPUs takes the place of what a look has seen in a second."""

from pardbg.watchdog.agent.server.devices import with_devices
from pardbg.watchdog.model.device import DeviceSeen
from pardbg.watchdog.model.evidence import Absence, Evidence, Observation
from pardbg.watchdog.model.names import AbsenceReason, CollectorName
from pardbg.watchdog.model.process import ProcessSample
from pardbg.watchdog.scan.nodes.messages import Seen
from tests.agent_server.shelf import OURS, Shelf, job

NOT_THERE = Absence(reason=AbsenceReason.TIMED_OUT, detail="NVML has not answered yet")


def evidence(rank: int | None, seen: Observation) -> Evidence:
    source = CollectorName.HOST if isinstance(seen, ProcessSample) else CollectorName.GPU
    return Evidence(source=source, rank=rank, observation=seen, origin="here")


def process(rank: int, *, uses_device: bool) -> Evidence:
    return evidence(rank, ProcessSample(pid=100 + rank, started_ticks=1, state="R", uses_device=uses_device))


def test_ranks_that_use_a_gpu_get_the_longer_view_and_others_keep_theirs() -> None:
    held = Shelf(seen_devices=tuple(evidence(rank, DeviceSeen(index=rank)) for rank in range(2)))
    look = Seen(evidence=(process(0, uses_device=True), process(1, uses_device=False), evidence(None, NOT_THERE)))
    found = with_devices(look, 1, (job("ours", OURS, OURS),), held)

    assert [(item.rank, type(item.observation)) for item in found.evidence] == [
        (0, ProcessSample),
        (1, ProcessSample),
        (0, DeviceSeen),
    ]


def test_look_without_a_gpu_stays_as_it_is() -> None:
    held = Shelf(seen_devices=(evidence(0, DeviceSeen(index=0)),))
    look = Seen(evidence=(process(0, uses_device=False),))

    assert with_devices(look, 0, (job("ours", OURS),), held) is look
