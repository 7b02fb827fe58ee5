"""Counts equal those of a plain count, whichever family of transformers routes, and whatever is done to the model."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import transformers

from tests.probe.routing.watched import Watched, count_plainly, gather_ids, watching

SMALL: dict[str, Any] = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 32,
    "moe_intermediate_size": 16,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "num_experts_per_tok": 2,
    "max_position_embeddings": 64,
    "use_cache": False,
}
LATENT: dict[str, Any] = {
    "q_lora_rank": 16,
    "kv_lora_rank": 16,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8,
    "v_head_dim": 8,
    "n_routed_experts": 8,
    "n_shared_experts": 1,
    "n_group": 2,
    "topk_group": 1,
    "first_k_dense_replace": 1,
}
FAMILIES: dict[str, tuple[str, dict[str, Any], list[int]]] = {
    "mixtral": ("Mixtral", {"num_local_experts": 8}, [0, 1, 2]),
    "qwen2_moe": ("Qwen2Moe", {"num_experts": 8, "shared_expert_intermediate_size": 16}, [0, 1, 2]),
    "qwen3_moe": ("Qwen3Moe", {"num_experts": 8, "head_dim": 8}, [0, 1, 2]),
    "olmoe": ("Olmoe", {"num_experts": 8}, [0, 1, 2]),
    "deepseek_v2": ("DeepseekV2", LATENT | {"topk_method": "greedy"}, [1, 2]),
    "deepseek_v3": ("DeepseekV3", LATENT, [1, 2]),
    "gpt_oss": ("GptOss", {"num_local_experts": 8, "head_dim": 8}, [0, 1, 2]),
}
RUNS = 2
"""Micro-batches a step."""


def make_model(family: str) -> Any:
    name, special, _ = FAMILIES[family]
    config = getattr(transformers, f"{name}Config")(**SMALL, **special)
    config._experts_implementation = "batched_mm"
    torch.manual_seed(0)
    return getattr(transformers, f"{name}ForCausalLM")(config).train()


def checkpoint(model: Any, *, reentrant: bool) -> None:
    model.activation_checkpointing_enable(activation_checkpointing_kwargs={"use_reentrant": reentrant})
    model.enable_input_require_grads()


def train(model: Any, run: Callable[..., Any] | None = None) -> None:
    """One step's passes, always of the same tokens. Nothing is learnt."""
    torch.manual_seed(1)
    for _ in range(RUNS):
        tokens = torch.randint(0, 64, (2, 16))
        (model if run is None else run)(input_ids=tokens, labels=tokens).loss.backward()


def expect(watched: Watched, model: Any, family: str) -> list[tuple[int, ...]]:
    """What the routers say if they are asked plainly, by layer."""
    layers = FAMILIES[family][2]
    place = "router" if family == "gpt_oss" else "gate"
    watched.here.clear()
    said = gather_ids(model, lambda: train(model), [f"model.layers.{layer}.mlp.{place}" for layer in layers])
    watched.here.append(1)
    return [count_plainly(ids, 8) for ids in said]


@pytest.mark.parametrize("family", FAMILIES)
def test_each_choice_is_counted_once_however_often_it_is_computed(family: str) -> None:
    with watching() as watched:
        model = make_model(family)
        expected = expect(watched, model, family)
        assert [sum(counts) for counts in expected] == [RUNS * 32 * 2] * len(expected)
        for prepare in (None, {"reentrant": True}, {"reentrant": False}):
            if prepare is not None:
                checkpoint(model, **prepare)
            train(model)
            model.eval()(input_ids=torch.zeros(1, 4, dtype=torch.int64))
            model.train()
            watched.end_step()
            rows = watched.last()
            assert [row.counts for row in rows] == expected, prepare
            assert [row.layer for row in rows] == FAMILIES[family][2]
            assert {(row.tokens, row.top_k, row.dropped, row.capacity) for row in rows} == {(RUNS * 32.0, 2, 0.0, None)}
        names = watched.read().names
        assert names[FAMILIES[family][2][0]].startswith(f"model.layers.{FAMILIES[family][2][0]}.mlp.")
        assert all((row.router_grad_norm or 0) > 0 for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_a_compiled_model_counts_the_same_in_one_graph_and_also_when_it_is_recomputed(family: str) -> None:
    with watching() as watched:
        model = make_model(family)
        expected = expect(watched, model, family)
        torch._dynamo.reset()
        compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
        for reentrant in (None, False):
            if reentrant is not None:
                checkpoint(model, reentrant=reentrant)
                torch._dynamo.reset()
                compiled = torch.compile(model, backend="aot_eager")
            for _ in range(2):
                train(model, compiled)
                watched.end_step()
                assert [row.counts for row in watched.last()] == expected, reentrant
        names = watched.read().names
        assert set(names) == set(FAMILIES[family][2])
        assert all(name.startswith("model.layers.") for name in names.values())
