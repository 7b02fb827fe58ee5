"""A program reports its own routing in one call, and nothing happens where there is no probe."""

import importlib
import sys
from typing import Any

import pytest
import torch

from pardbg.collectors.probe import harmless
from pardbg.collectors.probe.routing import reporting
from tests.probe.routing.watched import watching

IDS = torch.tensor([[0, 1], [1, 2], [1, 3], [2, 1]])


@pytest.fixture
def probe(monkeypatch: pytest.MonkeyPatch) -> Any:
    """`pardbg.probe` beside a probe that is there already, here that of the test: its own stays out of this process."""
    monkeypatch.setenv("PARDBG_PROBE", "0")
    monkeypatch.setitem(sys.modules, "_pardbg_probe.routing.reporting", reporting)
    return importlib.import_module("pardbg.probe")


def test_ids_with_a_mask_and_a_capacity_give_both_kinds_of_drops(probe: Any) -> None:
    with watching() as watched:
        kept = torch.ones(4, 2, dtype=torch.bool)
        kept[3, 1] = False
        for _ in range(2):
            probe.report_routing(3, experts=IDS, kept=kept, capacity=2, ep_size=2, logits=torch.zeros(4, 4))
        probe.report_routing("layers.7.moe", counts=[5, 0, 1], dropped=1, top_k=1, tokens=6, aux_loss=1.5)
        probe.report_loss(torch.tensor(2.5))
        watched.end_step()
        first, second = watched.last()
        assert (first.layer, first.counts, first.dropped, first.predicted_dropped) == (3, (2, 8, 4, 2), 2.0, 4.0)
        assert (first.capacity, first.top_k, first.tokens, first.ep_size, first.loss) == (2.0, 2, 8.0, 2, 2.5)
        assert first.entropy == pytest.approx(1.3862944)
        assert first.z == pytest.approx(1.3862944**2)
        assert (second.layer, second.counts, second.dropped, second.aux_loss) == (7, (5, 0, 1), 1.0, 1.5)
        assert watched.read().names == {7: "layers.7.moe"}


def test_the_gradient_of_a_reported_router_is_read_and_without_the_router_it_is_not_known(probe: Any) -> None:
    with watching() as watched:
        router = torch.nn.Linear(3, 4)
        optimizer = torch.optim.SGD(router.parameters(), lr=0.1)
        logits = router(torch.ones(4, 3))
        probe.report_routing(0, experts=IDS, logits=logits, router=router)
        probe.report_routing(1, experts=IDS, logits=logits, router=router.weight)
        probe.report_routing(2, experts=IDS, logits=logits)
        logits.square().sum().backward()
        watched.end_step(optimizer)
        expected = pytest.approx(router.weight.grad.norm().item()) if router.weight.grad is not None else 0
        assert [row.router_grad_norm for row in watched.last()] == [expected, expected, None]


def test_what_makes_no_sense_is_noted_and_does_not_raise(probe: Any) -> None:
    with watching():
        probe.report_routing(0, experts=IDS)
        probe.report_routing(0, counts="words")
        assert len(harmless.problems) == 2
        assert "num_experts is missing" in harmless.problems[0]
        harmless.problems.clear()


def test_without_a_probe_it_does_nothing(probe: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    said: dict[str, Any] = {"counts": object()}
    probe.report_routing(0, **said)
    monkeypatch.delitem(sys.modules, "_pardbg_probe.routing.reporting")
    probe.report_routing(0, **said)
    probe.report_loss(1.0)


def test_within_compiled_code_it_says_once_that_it_reports_nothing(probe: Any) -> None:
    with watching() as watched:

        def run(rows: torch.Tensor) -> torch.Tensor:
            probe.report_routing(0, counts=rows)
            probe.report_loss(rows)
            return rows + 1

        compiled = torch.compile(run, backend="eager", fullgraph=True)
        for width in (3, 3, 4):
            assert compiled(torch.ones(width))[0] == 2
        assert harmless.problems == [reporting.IN_COMPILED]
        harmless.problems.clear()
        assert watched.routers.layers == []
