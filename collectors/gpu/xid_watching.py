"""Waits for Xid errors in a thread of NVML's child: NVML tells them as events, and forgets them at once.

Only what is reported while we wait is heard; earlier ones are in the kernel log. Cost: one call each five seconds.
"""

import contextlib
import ctypes
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from pardbg.collectors.gpu.card_reading import Card

_WAIT_MS = 5000
_PAUSE_S = 5.0
_TIMED_OUT = 10


def watch_xids(nvml: Any, cards: Iterable[Card], told: Callable[[int, int, int], None]) -> None:
    """Starts the thread. ``told`` hears index, code and epoch ns of each; it is called from the thread."""
    watched = {_address(card.handle): card for card in cards}
    if watched:
        threading.Thread(target=_watch, args=(nvml, watched, told), daemon=True).start()


def _watch(nvml: Any, cards: dict[int | None, Card], told: Callable[[int, int, int], None]) -> None:
    """A lost GPU ends the waiting for all: a new set then leaves it out."""
    while True:
        with contextlib.suppress(nvml.NVMLError):
            events = nvml.nvmlEventSetCreate()
            try:
                if not sum(_register(nvml, card, events) for card in cards.values()):
                    return
                _wait(nvml, cards, events, told)
            finally:
                nvml.nvmlEventSetFree(events)
        time.sleep(_PAUSE_S)


def _register(nvml: Any, card: Card, events: Any) -> bool:
    try:
        nvml.nvmlDeviceRegisterEvents(card.handle, nvml.nvmlEventTypeXidCriticalError, events)
    except nvml.NVMLError:
        return False
    return True


def _wait(nvml: Any, cards: dict[int | None, Card], events: Any, told: Callable[[int, int, int], None]) -> None:
    """Until NVML raises anything but a timeout."""
    while True:
        try:
            event = nvml.nvmlEventSetWait_v2(events, _WAIT_MS)
        except nvml.NVMLError as error:
            if error.value == _TIMED_OUT:
                continue
            raise
        card = cards.get(_address(event.device))
        if card is not None and event.eventType == nvml.nvmlEventTypeXidCriticalError:
            told(card.index, int(event.eventData), time.time_ns())


def _address(handle: Any) -> int | None:
    return ctypes.cast(handle, ctypes.c_void_p).value
