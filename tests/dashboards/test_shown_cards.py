"""GPUs on the page of metrics: base units, and whose they are."""

from msgspec.structs import replace

from pardbg.collectors.gpu.cards import CardSample
from pardbg.collectors.gpu.messages import Condition
from pardbg.dashboards.scene import CardShown
from pardbg.watchdog.agent.shown_cards import show_cards
from pardbg.watchdog.model.device import XidSeen
from tests.dashboards.snapshots import HOST, healthy_rank, job, snapshot

FULL = Condition(
    power_limit_mw=700_000,
    memory_clock_mhz=2600,
    memory_temperature_c=77,
    used_bytes=60,
    total_bytes=80,
    pcie_replays=2,
    ecc_corrected=1,
    ecc_uncorrected=0,
    nvlink_errors=7,
    up_links=(0, 1),
    pids=(1001,),
)


def test_gpu_is_shown_in_base_units_with_its_rank_and_last_error() -> None:
    sample = CardSample(
        index=3,
        uuid="GPU-a",
        util=97,
        mem_util=40,
        power_w=640.0,
        power_limit_w=700.0,
        sm_clock_mhz=1980,
        clock_reasons=0x24,
        temperature_c=61,
        condition=FULL,
        was_up=(0, 1, 2),
    )
    xids = [("GPU-a", XidSeen(code=94, at_ns=1)), ("GPU-b", XidSeen(code=48, at_ns=2)), ("GPU-a", XidSeen(code=79, at_ns=3))]
    (shown,) = show_cards(snapshot(job(size=2)), [sample], xids)
    assert shown == CardShown(
        host=HOST,
        gpu="3",
        uuid="GPU-a",
        job_id="48213",
        world="n05:29500|2|0",
        rank="1",
        utilization_ratio=0.97,
        memory_ratio=0.4,
        memory_used_bytes=60,
        memory_total_bytes=80,
        power_watts=640.0,
        power_limit_watts=700.0,
        sm_clock_hertz=1.98e9,
        memory_clock_hertz=2.6e9,
        temperature_celsius=61,
        memory_temperature_celsius=77,
        clock_reasons=("power cap", "thermal slowdown by software"),
        pcie_replays=2,
        nvlink_errors=7,
        ecc_corrected=1,
        ecc_uncorrected=0,
        last_xid=79,
        down_links=1,
    )


def test_gpu_that_ranks_share_names_them_all_and_one_of_nobody_names_none() -> None:
    shared, free = (
        CardSample(index=0, condition=Condition(pids=(1000, 1001))),
        CardSample(index=1, condition=Condition(pids=())),
    )
    shown = show_cards(snapshot(job(size=2)), [shared, free])
    assert [(card.job_id, card.rank) for card in shown] == [("48213", "0-1"), ("", "")]


def test_where_no_processes_are_told_the_local_rank_is_taken() -> None:
    ranks = {0: replace(healthy_rank(8), local_rank=0), 1: replace(healthy_rank(9), local_rank=1)}
    shown = show_cards(snapshot(job(size=2, rank=ranks.__getitem__)), [CardSample(index=0), CardSample(index=1)])
    assert [card.rank for card in shown] == ["8", "9"]


def test_lost_gpu_says_so_and_nothing_else() -> None:
    (shown,) = show_cards(snapshot(), [CardSample(index=0, uuid="GPU-a", is_lost=True, is_silent=True)])
    assert (shown.is_lost, shown.is_silent, shown.power_watts) == (True, True, None)
