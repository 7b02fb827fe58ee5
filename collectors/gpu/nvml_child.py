"""The child process that speaks to NVML: any call may hang in the driver, and then this process is given up, nothing else.

It reads one JSON line with what to do, and writes one for each thing it sees, each GPU's at once: the first GPU that stays
silent is the one that hangs. It ends when its input does, so also when pardbg is killed. Standard library and pynvml only.
Cost: 35 ms of a processor to start, 15 MB; each second 0.6 ms for eight GPUs besides what the driver itself takes.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Collection, Iterable
from typing import Any

from pardbg.collectors.first_to_go import be_the_first_to_go
from pardbg.collectors.gpu.card_reading import LOST_CODES, Card, CardLostError
from pardbg.collectors.gpu.xid_watching import watch_xids

_SLOW_TURNS = 10  # what changes slowly is read in every tenth turn, and so is a GPU that is lost


class Telling:
    """Writes lines, from several threads. Nothing else may write between them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._output = os.dup(1)
        os.dup2(2, 1)

    def __call__(self, kind: str, **values: Any) -> None:
        """One line; what is None is left out. Ends the process if nobody listens."""
        known = {name: value for name, value in values.items() if value is not None}
        line = json.dumps({"kind": kind, **known}).encode() + b"\n"
        with self._lock:
            try:
                os.write(self._output, line)
            except OSError:
                os._exit(0)


def main() -> None:
    """Serves until the parent closes the pipe."""
    be_the_first_to_go()
    wish = json.loads(sys.stdin.buffer.readline() or b"{}")
    threading.Thread(target=_end_with_input, daemon=True).start()
    serve(wish, Telling())


def serve(wish: dict[str, Any], tell: Telling) -> None:
    """Opens NVML and reads on and on: ``period_s`` apart, but for the GPUs in ``skip``."""
    import pynvml  # noqa: PLC0415 - only here: it takes 5 MB

    try:
        pynvml.nvmlInit()
        count = pynvml.nvmlDeviceGetCount()
    except pynvml.NVMLError as error:
        tell("refused", code=error.value, words=str(error))
        return
    cards = _open(pynvml, range(count), wish.get("skip", ()), tell)
    watch_xids(pynvml, cards, lambda index, code, at_ns: tell("xid", index=index, code=code, at_ns=at_ns))
    turns = _Turns(cards, tell)
    next_s = time.monotonic()
    while True:
        turns.take()
        next_s = max(next_s + float(wish.get("period_s", 1.0)), time.monotonic())  # what was missed is not made up for
        time.sleep(max(0.0, next_s - time.monotonic()))


def _open(nvml: Any, indices: Iterable[int], skipped: Collection[int], tell: Telling) -> list[Card]:
    """Finds the GPUs; one that cannot be opened is told with the reason."""
    cards, told = [], []
    for index in indices:
        card: dict[str, Any] = {"index": index}
        if index not in skipped:
            try:
                found = Card(nvml, index)
                card |= found.identity()
                cards.append(found)
            except CardLostError as error:
                card |= {"problem": str(error), "is_lost": True}
            except nvml.NVMLError as error:
                card |= {"problem": str(error), "is_lost": error.value in LOST_CODES, "code": error.value}
        told.append({name: value for name, value in card.items() if value is not None})
    tell("opened", driver=_driver(nvml), cards=told)
    return cards


def _driver(nvml: Any) -> str | None:
    try:
        return str(nvml.nvmlSystemGetDriverVersion())
    except nvml.NVMLError:
        return None


class _Turns:
    """Reads all GPUs once a turn."""

    def __init__(self, cards: list[Card], tell: Telling) -> None:
        self._cards = cards
        self._tell = tell
        self._turn = 0
        self._lost: set[int] = set()

    def take(self) -> None:
        is_slow = self._turn % _SLOW_TURNS == 0
        self._turn += 1
        for card in self._cards:
            if is_slow or card.index not in self._lost:
                self._read(card, is_slow=is_slow)

    def _read(self, card: Card, *, is_slow: bool) -> None:
        at_ns = time.monotonic_ns()
        try:
            pulse = card.pulse()
            condition = card.condition() if is_slow else None
        except CardLostError as error:
            self._lost.add(card.index)
            self._tell("lost", index=card.index, at_ns=at_ns, words=str(error))
            return
        self._lost.discard(card.index)
        if condition is not None:
            condition = {name: value for name, value in condition.items() if value is not None}
        self._tell("reading", index=card.index, at_ns=at_ns, condition=condition, **pulse)


def _end_with_input() -> None:
    while os.read(0, 4096):
        pass
    os._exit(0)


if __name__ == "__main__":
    main()
