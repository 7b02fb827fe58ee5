"""What the routers of other frameworks answer is understood: stand-ins, since most of them need a GPU to run."""

from typing import Any

import pytest
import torch
from torch import nn

from pardbg.watchdog.model.routing import RoutingRow
from tests.probe.routing import stand_ins
from tests.probe.routing.watched import Watched, watching

ROWS = torch.randn(16, stand_ins.HIDDEN, generator=torch.Generator().manual_seed(3))


class Model(nn.Module):
    """Each router in a layer of its own."""

    def __init__(self, *routers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.ModuleList()
        for router in routers:
            self.layers.append(nn.ModuleDict({"mlp": nn.ModuleDict({"router": router})}))


def route(watched: Watched, router: Any) -> tuple[Any, RoutingRow]:
    """The answer to two micro-batches of the same rows, of which the first is given back."""
    model = Model(router)
    answer = router(ROWS)
    router(ROWS)
    watched.end_step()
    assert model.training
    return answer, watched.last()[-1]


def plain(ids: torch.Tensor) -> tuple[int, ...]:
    numbers = ids.reshape(-1).tolist()
    return tuple(2 * sum(number == expert for number in numbers) for expert in range(stand_ins.EXPERTS))


def test_megatron_without_capacity() -> None:
    with watching() as watched:
        (probs, _), row = route(watched, stand_ins.MegatronRouter(number=7))
        assert row.counts == plain(probs.topk(2).indices)
        assert (row.layer, row.top_k, row.tokens, row.dropped, row.ep_size) == (6, 2, 32.0, 0.0, 2)
        assert watched.read().names == {6: "layers.0.mlp.router"}


@pytest.mark.parametrize("pads", [False, True])
def test_megatron_with_capacity_says_what_is_left_and_what_was_dropped(*, pads: bool) -> None:
    with watching() as watched:
        (probs, mask), row = route(watched, stand_ins.MegatronRouter(0.5, pads=pads))
        kept = [2 * sum(value > 0 for value in column) for column in probs.T.tolist()]
        assert row.counts == tuple(kept)
        assert row.dropped == 64 - sum(kept) > 0
        assert row.predicted_dropped is None
        assert int(mask.sum()) == (16 if pads else sum(kept) // 2)


@pytest.mark.parametrize("kind", [stand_ins.TokenChoiceTopKRouter, stand_ins.AutoEP])
def test_torchtitan_and_autoep(kind: Any) -> None:
    with watching() as watched:
        answer, row = route(watched, kind())
        assert (row.counts, row.dropped, row.top_k) == (plain(answer[1]), 0.0, 2)
        assert row.z is None
        assert (row.entropy is not None) is (kind is stand_ins.TokenChoiceTopKRouter)


@pytest.mark.parametrize(("kind", "place", "lost"), [(stand_ins.OldMegatronRouter, 1, 2), (stand_ins.GShardGate, 0, 4)])
def test_a_number_that_is_no_expert_is_a_drop(kind: Any, place: int, lost: int) -> None:
    with watching() as watched:
        answer, row = route(watched, kind())
        assert (row.counts, row.dropped, row.tokens) == (plain(answer[place]), float(lost), 32.0)


@pytest.mark.parametrize("kind", [stand_ins.TopKGate, stand_ins.SparseTopKGate])
def test_deepspeed_counts_before_drops_and_says_its_capacity(kind: Any) -> None:
    with watching() as watched:
        answer, row = route(watched, kind())
        counts = tuple(2 * number for number in answer[-1].tolist())
        over = sum(2 * max(0, number - 2) for number in answer[-1].tolist())
        assert (row.counts, row.capacity, row.top_k, row.tokens) == (counts, 2.0, 1, 32.0)
        assert row.dropped == row.predicted_dropped == over > 0
        assert row.aux_loss == pytest.approx(answer[0].item())


def test_tutel_is_read_from_its_layer() -> None:
    with watching() as watched:
        layer = stand_ins.MOELayer()
        _, row = route(watched, layer)
        assert row.counts == tuple(2 * number for number in layer.dispatch_count.tolist())
        assert (row.top_k, row.tokens, row.dropped) == (2, 32.0, None)
        assert row.aux_loss == pytest.approx(layer.l_aux.item())


def test_megablocks_drops_later_so_drops_are_not_known() -> None:
    with watching() as watched:
        answer, row = route(watched, stand_ins.LearnedRouter())
        chances = answer[0].double()
        assert (row.counts, row.dropped, row.z) == (plain(answer[2]), None, None)
        assert row.entropy == pytest.approx(-(chances * chances.log()).sum(-1).mean().item(), rel=1e-5)


def test_gates_of_transformers_4() -> None:
    with watching() as watched:
        block = stand_ins.OlmoeSparseMoeBlock()
        _, row = route(watched, block)
        logits = block.gate(ROWS)
        assert (row.counts, row.dropped) == (plain(logits.topk(2).indices), 0.0)
        assert row.z == pytest.approx(logits.logsumexp(-1).square().mean().item(), rel=1e-5)
        answer, row = route(watched, stand_ins.OldDeepseekV2MoEGate())
        assert (row.counts, row.top_k) == (plain(answer[0]), 2)


def test_stages_of_a_pipeline_and_a_second_model_have_numbers_of_their_own() -> None:
    with watching() as watched:
        stage = Model(stand_ins.MegatronRouter(number=5), stand_ins.MegatronRouter(number=6))
        other = Model(stand_ins.AutoEP(), stand_ins.AutoEP())
        routers = [part for model in (stage, other) for name, part in model.named_modules() if name.endswith("router")]
        for router in routers[1:] + routers[:1]:
            router(ROWS)
        watched.end_step()
        routers[0](ROWS)
        watched.end_step()
        assert {row.layer for row in watched.read().rows if row.step == 1} == {0, 1, 4, 5}
        assert [row.layer for row in watched.last()] == [4]
        assert watched.read().names[4] == "layers.0.mlp.router"
