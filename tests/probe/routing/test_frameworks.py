"""What the routers of other frameworks answer is understood: stand-ins, since most of them need a GPU to run."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from pardbg.watchdog.model.routing import RoutingRow
from pardbg.watchdog.routing.figures import measure
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


ASKED = torch.tensor([[3.0, 2, 1, 0]] * 5 + [[3.0, 0, 2, 1]] * 3)
"""Logits of 8 tokens: expert 0 is wanted by 8, 1 by 5, 2 by 3, and 3 by none. By a factor of 1 each takes 4."""


def route_asked(watched: Watched, router: Any) -> tuple[Any, RoutingRow]:
    """Twice the tokens of `ASKED`, each of them with a little of its own."""
    with torch.no_grad():
        router.weight.zero_()[:, :4] = torch.eye(4)
    rows = nn.functional.pad(ASKED * torch.linspace(1, 2, 8).unsqueeze(1), (0, 4))
    model = Model(router)
    answer = router(rows)
    router(rows)
    watched.end_step()
    assert model.training
    return answer, watched.last()[-1]


@pytest.mark.parametrize("pads", [False, True])
@pytest.mark.parametrize("policy", ["probs", "position"])
@pytest.mark.parametrize("more", [{}, {"moe_router_pre_softmax": True}, {"moe_router_score_function": "sigmoid"}])
def test_megatron_with_capacity_counts_what_was_asked_for(pads: bool, policy: str, more: dict[str, Any]) -> None:  # noqa: FBT001
    with watching() as watched:
        router = stand_ins.MegatronRouter(1.0, pads=pads, moe_token_drop_policy=policy, **more)
        (probs, mask), row = route_asked(watched, router)
        assert (row.counts, row.counts_are_kept, row.capacity) == ((16, 10, 6, 0), False, 4.0)
        assert (row.dropped, row.predicted_dropped, row.tokens) == (10.0, 10.0, 16.0)
        assert (probs > 0).sum(0).tolist() == [4, 4, 3, 0]
        assert int(mask.sum()) == (16 if pads else 11)


@pytest.mark.parametrize("more", [{"moe_router_num_groups": 2}, {"moe_router_load_balancing_type": "quantile_balancing"}])
def test_where_choices_are_not_told_by_logits_counts_are_what_was_kept(more: dict[str, Any]) -> None:
    with watching() as watched:
        (probs, _), row = route_asked(watched, stand_ins.MegatronRouter(1.0, **more))
        kept = [2 * number for number in (probs > 0).sum(0).tolist()]
        assert (list(row.counts), row.counts_are_kept, row.predicted_dropped) == (kept, True, None)
        assert (row.dropped, row.capacity) == (32.0 - sum(kept), 4.0)
        figures = measure(row)
        assert figures is not None
        assert figures.drop_ratio == (32 - sum(kept)) / 32


def test_a_release_that_chooses_otherwise_than_by_logits_is_found_out() -> None:
    with watching() as watched:
        router = stand_ins.MegatronRouter(1.0)
        object.__setattr__(router, "config", SimpleNamespace(**vars(router.config)))
        Model(router)
        router.config.moe_router_num_groups = 2
        router(torch.zeros(1, stand_ins.HIDDEN))
        watched.end_step()
        router.config.moe_router_num_groups = 0
        hook: Any = next(iter(router._forward_hooks.values()))
        for asked, told in (([[0, 1], [0, 1]], ((2, 2, 0, 0), 4.0, 0.0)), ([[0, 2], [0, 1]], ((1, 1, 0, 0), 2.0, None))):
            hook.traits = hook.traits._replace(scores=1, capacity_factor=2.0)
            hook.asked = torch.tensor(asked)
            kept = torch.tensor([[True, True, False, False], [False, False, False, False]])
            hook.hear(router, (), (kept.float(), kept))
            watched.end_step()
            row = watched.last()[-1]
            assert (row.counts, row.predicted_dropped, row.counts_are_kept) == (told[0], told[2], told[2] is None)
            assert row.dropped == 2.0


def test_a_recomputed_and_a_compiled_router_with_capacity_count_the_same() -> None:
    from torch.utils.checkpoint import checkpoint  # noqa: PLC0415

    with watching() as watched:
        router = stand_ins.MegatronRouter(0.5)
        model = Model(router)
        plainly = router(ROWS)[0]
        watched.end_step()
        expected = watched.last()[0]
        assert expected.predicted_dropped is not None
        block = nn.Sequential(router)
        compiled = torch.compile(block, backend="aot_eager", fullgraph=True)
        for run in (router, compiled):
            for reentrant in (None, False, True):
                rows = ROWS.clone().requires_grad_()
                probs = run(rows)[0] if reentrant is None else checkpoint(run, rows, use_reentrant=reentrant)[0]
                probs.sum().backward()
                assert torch.equal(probs, plainly)
                watched.end_step()
                row = watched.last()[0]
                told = (row.counts, row.dropped, row.predicted_dropped)
                assert told == (expected.counts, expected.dropped, expected.predicted_dropped), (run is compiled, reentrant)
        assert model.training
        assert block.training


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
        assert (row.counts_are_kept, sum(row.counts)) == (True, 64 - lost)
        figures = measure(row)
        assert figures is not None
        assert figures.drop_ratio == lost / 64


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
