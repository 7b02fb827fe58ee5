"""Sums come from a device that is behind the host: none is lost that can be kept, none is read before it has arrived.

There is no GPU here: streams, events and pinned memory are stand-ins that do what CUDA says of them (work is done when the
stream comes to it, `query` tells whether it has). The last test is the real thing, where there is one.
"""

from collections import deque
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from pardbg.collectors.probe.routing.copying import MOST_WAITING, Copier
from pardbg.collectors.probe.routing.layer import GRADIENT
from tests.probe.routing import stand_ins
from tests.probe.routing.test_frameworks import ROWS, Model, plain
from tests.probe.routing.watched import watching


class Device:
    """One that does nothing before it is told to."""

    def __init__(self) -> None:
        self.work: deque[Callable[[], None]] = deque()

    def run(self) -> None:
        """One copy and its event."""
        for _ in range(2):
            self.work.popleft()()


class Event:
    """Happens when the stream comes to it."""

    def __init__(self) -> None:
        self.has_happened = False

    def record(self, stream: Any) -> None:
        """In the order of the stream's work."""
        stream.of.work.append(self._happen)

    def query(self) -> bool:
        """Does not wait."""
        return self.has_happened

    def synchronize(self) -> None:
        """Nobody may."""
        raise AssertionError("waits for the device")

    def _happen(self) -> None:
        self.has_happened = True


class Stream:
    """Its copies wait in the device."""

    def __init__(self, of: Device) -> None:
        self.of, self.device = of, torch.device("cpu")

    def wait_stream(self, _other: Any) -> None:
        """The other one has nothing to do here."""


class Pinned(torch.Tensor):
    """Memory that a device fills when it comes to it."""

    device_of: Device

    def copy_(self, source: torch.Tensor, non_blocking: bool = False) -> Any:  # noqa: FBT001, FBT002
        """Later."""
        assert non_blocking
        plainly = self.as_subclass(torch.Tensor)
        self.device_of.work.append(lambda: plainly.copy_(source))  # type: ignore[arg-type]
        return self


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    own = Device()
    real_empty = torch.empty

    def empty(*shape: Any, pin_memory: bool = False, **more: Any) -> torch.Tensor:
        memory = real_empty(*shape, **more)
        if pin_memory:
            memory = memory.fill_(-1).as_subclass(Pinned)
            memory.device_of = own
        return memory

    @contextmanager
    def within(_stream: Any) -> Any:
        yield

    for name, stand_in in {
        "Stream": lambda **_: Stream(own),
        "Event": Event,
        "stream": within,
        "current_stream": lambda *_: None,
    }.items():
        monkeypatch.setattr(torch.cuda, name, stand_in)
    monkeypatch.setattr(torch, "empty", empty)
    return own


def test_steps_arrive_in_order_and_where_the_device_is_far_behind_some_are_left_out(device: Device) -> None:
    copier = Copier(frozenset({"cpu"}))
    rows = [torch.zeros(12, dtype=torch.float64) for _ in range(2)]

    def step(number: int) -> list[int]:
        rows[0][11] += number
        copier.take(rows, torch.tensor([0.5]), number)
        assert rows[0][11] == 0
        return arrived()

    def arrived() -> list[int]:
        found = []
        for sums in copier.finished():
            assert float(sums.rows[0, 11]) == sums.note
            assert float(sums.rows[0, GRADIENT]) == 0.5
            found.append(sums.note)
        return found

    assert [step(number) for number in range(1, 7)] == [[]] * 6
    assert len(device.work) == 2 * MOST_WAITING == 8
    device.work.popleft()()  # the copy is there, its event is not
    assert arrived() == []
    device.work.popleft()()
    device.run()
    assert arrived() == [1, 2]
    assert step(7) == []
    for _ in range(3):
        device.run()
    assert step(8) == [3, 4, 7]
    device.run()
    assert arrived() == [8]
    for number in range(9, 40):
        step(number)
        device.run()
        assert arrived() == [number]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_real_device_is_never_waited_for() -> None:
    with watching() as watched:
        routers = [stand_ins.TokenChoiceTopKRouter().cuda(), stand_ins.MegatronRouter(0.5).cuda()]
        model = Model(*routers)
        rows = ROWS.cuda()
        answers = [router(rows) for router in routers]
        watched.end_step()
        torch.cuda.set_sync_debug_mode("error")
        try:
            for _ in range(20):
                for router in routers:
                    router(rows)[0].sum().backward()
                watched.end_step()
        finally:
            torch.cuda.set_sync_debug_mode("default")
        torch.cuda.synchronize()
        watched.end_step()
        shown = [row for row in watched.read().rows if row.layer == 0 and row.step > 1 and row.tokens]
        assert shown
        expected = tuple(number // 2 for number in plain(answers[0][1]))
        assert {row.counts for row in shown} == {expected}
        assert model.training
