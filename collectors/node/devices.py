"""Whether the GPUs of this machine can be read. Cost: where there is one, a child of 35 ms (`gpu/gpus.py`)."""

import time
from pathlib import Path

from pardbg.collectors.gpu.cards import CardSample
from pardbg.collectors.gpu.gpus import Gpus
from pardbg.collectors.gpu.looking import CONTROL_NODE, PERIOD_S, WITHIN_S
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.evidence import Absence


class DevicesTrial(Noun, frozen=True, kw_only=True):
    """What NVML says: the GPUs, or why there is none. ``has_node``: the kernel has the device NVML speaks to."""

    has_node: bool = False
    driver: str | None = None
    cards: tuple[CardSample, ...] = ()
    absence: Absence | None = None


def try_devices(control_node: Path = CONTROL_NODE, *, within_s: float = WITHIN_S) -> DevicesTrial:
    """Looks once, for at most ``within_s``."""
    if not control_node.exists():
        return DevicesTrial()
    until_s = time.monotonic() + within_s
    with Gpus(period_s=PERIOD_S, silence_s=within_s, opening_s=within_s) as gpus:
        while time.monotonic() < until_s and not _has_answered(gpus):
            time.sleep(PERIOD_S / 4)
        return DevicesTrial(has_node=True, driver=gpus.driver, cards=gpus.latest(), absence=gpus.absence())


def _has_answered(gpus: Gpus) -> bool:
    if gpus.absence() is not None:
        return not gpus.is_opening
    return all(card.problem or card.at_ns is not None for card in gpus.latest())
