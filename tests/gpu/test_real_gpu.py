"""The same on a real GPU, where there is one."""

import time
from pathlib import Path

import pytest

from pardbg.collectors.gpu.looking import CONTROL_NODE
from tests.gpu.driver import reading, wait_for

pytestmark = pytest.mark.skipif(not CONTROL_NODE.exists(), reason="no NVIDIA GPU here: the stand-in's tests say the rest")
MOST_CPU_SHARE = 0.01


def cpu_s(pid: int) -> float:
    return sum(int((task / "schedstat").read_text().split()[0]) for task in Path(f"/proc/{pid}/task").iterdir()) / 1e9


def test_a_real_driver_tells_what_its_gpus_do_at_little_cost() -> None:
    with reading(period_s=1.0, silence_s=30.0) as gpus:
        wait_for(lambda: gpus.absence() is None and all(card.at_ns or card.problem for card in gpus.latest()))
        before_s, pid = cpu_s(gpus.pid or 0), gpus.pid or 0
        time.sleep(5)
        share = (cpu_s(pid) - before_s) / 5
        cards = [card for card in gpus.latest() if not card.problem]

        assert all(card.uuid and card.pci_bus_id and card.condition.total_bytes for card in cards)
        assert all(card.util is not None or card.condition.is_shared for card in cards)
        assert gpus.pid == pid
        assert share < MOST_CPU_SHARE, (share, cards)
