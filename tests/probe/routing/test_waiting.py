"""Counting issues no operation for which a GPU would have to be waited for."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from pardbg.collectors.probe.routing import layer as layer_file
from pardbg.collectors.probe.routing import reporting
from pardbg.collectors.probe.routing.recognising import find_weight
from tests.probe.routing import stand_ins
from tests.probe.routing.test_frameworks import ROWS, Model
from tests.probe.routing.watched import watching

WAITING = ("_local_scalar_dense", "nonzero", "bincount", "unique", "masked_select", "is_nonzero", "equal", "item", "_to_cpu")


class NoWaiting(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Raises at an operation for which a GPU would have to be waited for; notes the others."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.names: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.__name__.split(".")[0]
        selects = name.startswith("index") and any(
            getattr(part, "dtype", None) in {torch.bool, torch.uint8} for part in (args[1] if len(args) > 1 else ()) or ()
        )
        if name in WAITING or "unique" in name or selects:
            raise AssertionError(f"{func} waits for the device")
        self.names.add(name)
        return func(*args, **(kwargs or {}))


ALL: list[Callable[[], Any]] = [
    stand_ins.MegatronRouter,
    lambda: stand_ins.MegatronRouter(0.5),
    lambda: stand_ins.MegatronRouter(0.5, pads=True),
    stand_ins.OldMegatronRouter,
    stand_ins.TokenChoiceTopKRouter,
    stand_ins.AutoEP,
    stand_ins.TopKGate,
    stand_ins.SparseTopKGate,
    stand_ins.GShardGate,
    stand_ins.LearnedRouter,
]


def test_no_operation_waits_for_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    with watching() as watched:
        models = []
        for make in ALL:
            router = make()
            models.append(Model(router))
            answer = router(ROWS)
            hook: Any = next(iter(router._forward_hooks.values()))
            with NoWaiting() as seen, monkeypatch.context() as patch:
                patch.setattr(torch._C, "_len_torch_dispatch_stack", int)  # or nothing of ours would be shown to it
                for is_sampled in (True, False):
                    watched.routers.is_sampled = is_sampled
                    hook.ask(router, answer[0].detach())
                    assert hook.hear(router, (ROWS,), answer)
                    assert seen.names & {"scatter_add_", "add_"}
                    seen.names.clear()
        ids, kept = torch.tensor([[0, 1], [2, 1]]), torch.ones(2, 2, dtype=torch.bool)
        with NoWaiting() as seen:
            said = {"experts": ids, "kept": kept, "capacity": 1, "logits": torch.zeros(2, 4), "loss": ROWS.sum()}
            reporting.report_routing(99, **said)
            assert "scatter_add_" in seen.names
            seen.names.clear()
            for layer in watched.routers.layers:
                weight = find_weight(layer.module()) if layer.module() is not None else None
                if weight is not None:
                    weight.grad = torch.ones_like(weight)
            watched.end_step()
            assert {"stack", "_foreach_norm", "_foreach_zero_"} <= seen.names
        assert len(watched.read().rows) == len(ALL) + 1


@pytest.mark.parametrize(
    "wait",
    [
        lambda: ROWS[ROWS > 0],
        lambda: ROWS.sum().item(),
        lambda: bool(ROWS.sum() > 0),
        ROWS.nonzero,
        ROWS.unique,
        lambda: torch.bincount(ROWS.long().abs().reshape(-1)),
        lambda: int(ROWS.argmax()),
    ],
)
def test_an_operation_that_waits_would_be_found(wait: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    with watching() as watched:
        router = stand_ins.TokenChoiceTopKRouter()
        model = Model(router)
        answer = router(ROWS)
        hook: Any = next(iter(router._forward_hooks.values()))
        monkeypatch.setattr(torch._C, "_len_torch_dispatch_stack", int)
        monkeypatch.setattr(layer_file, "_add_drops", lambda *_: wait())
        with NoWaiting(), pytest.raises(AssertionError, match="waits"):
            hook.hear(router, (ROWS,), answer)
        assert watched.routers.layers
        assert model.training
