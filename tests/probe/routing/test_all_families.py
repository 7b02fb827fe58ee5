"""Every family of the installed transformers whose small model can be made here: counts are what its experts were given.

Not made here, since their configurations ask for more than sizes: dbrx, deepseek_ocr2, dots3_note, ernie4_5_vl_moe,
glm4v_moe, glm5_next, hy_v4_vl, kimi_k25, mimo_v2_flash, mistral4, step3p7; their routers answer as those that are. Not read:
nllb_moe (of its two choices the answer says the first alone), doge (has no router of its own). granite_docling's router
chooses no experts.
"""

import importlib
import inspect
from typing import Any

import pytest
import torch
from torch import nn

from tests.probe.routing.watched import count_plainly, watching

pytestmark = pytest.mark.slow

SIZES: dict[str, Any] = {
    "bos_token_id": 1,
    "eos_token_id": 2,
    "first_k_dense_replace": 1,
    "global_head_dim": 8,
    "head_dim": 8,
    "hidden_size": 32,
    "index_head_dim": 16,
    "index_n_heads": 2,
    "index_topk": 4,
    "intermediate_size": 32,
    "intermediate_size_mlp": 32,
    "kv_lora_rank": 16,
    "mamba_d_head": 16,
    "mamba_d_state": 8,
    "mamba_n_groups": 1,
    "mamba_n_heads": 4,
    "max_position_embeddings": 64,
    "moe_intermediate_size": 16,
    "moe_topk": 2,
    "n_group": 1,
    "n_routed_experts": 8,
    "n_shared_experts": 1,
    "num_attention_heads": 4,
    "num_dense_layers": 1,
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "num_hidden_layers": 3,
    "num_key_value_heads": 4,
    "num_local_experts": 8,
    "num_shared_experts": 1,
    "pad_token_id": 0,
    "q_lora_rank": 16,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 8,
    "router_hidden_size": 16,
    "shared_expert_intermediate_size": 16,
    "shared_intermediate_size": 16,
    "top_k_experts": 2,
    "topk_group": 1,
    "use_cache": False,
    "v_head_dim": 8,
    "vocab_size": 64,
}
FAMILIES: dict[str, dict[str, Any]] = {
    name: {}
    for name in [
        "afmoe",
        "aria",
        "axk1",
        "axk2",
        "bailing_hybrid",
        "cohere2_moe",
        "deepseek_v2",
        "deepseek_v3",
        "deepseek_v32",
        "deepseek_v4",
        "dots1",
        "ernie4_5_moe",
        "exaone_moe",
        "flex_olmo",
        "flint",
        "glm4_moe",
        "glm4_moe_lite",
        "glm_moe_dsa",
        "gpt_oss",
        "granitemoe",
        "granitemoe_swa",
        "granitemoehybrid",
        "granitemoeshared",
        "hunyuan_v1_moe",
        "hy_v3",
        "hy_v4",
        "inkling",
        "inkling2",
        "inkling2_loop",
        "jamba",
        "kimi_linear",
        "kolibri1",
        "laguna",
        "lara_mini",
        "longcat_flash",
        "mellum",
        "minimax",
        "minimax_m2",
        "minimax_m3_vl",
        "mixtral",
        "nemotron_h",
        "olmoe",
        "phimoe",
        "qwen2_moe",
        "qwen3_5_moe",
        "qwen3_moe",
        "qwen3_next",
        "qwen4_exp",
        "solar_open",
    ]
} | {
    "beam": {"mlp_layer_types": ["sparse"] * 3},
    "gemma4": {"enable_moe_block": True, "hidden_size_per_layer_input": 0, "vocab_size_per_layer_input": 64},
    "jetmoe": {},
    "lfm2_moe": {"layer_types": ["full_attention"] * 3},
    "llama4": {"moe_layers": [0, 1, 2]},
    "zaya": {"num_experts_per_tok": 1},
}
BY_LOGITS = {"jetmoe": 4, "llama4": 1}
"""Their experts are not given the choices: the place of the logits in what the router answers."""


def make_model(family: str) -> Any:
    module = importlib.import_module(f"transformers.models.{family}.modeling_{family}")
    made: Any = next(
        part for name, part in vars(module).items() if name.endswith("ForCausalLM") and part.__module__ == module.__name__
    )
    known = {name for kind in made.config_class.__mro__ for name in getattr(kind, "__annotations__", {})}
    known |= set(inspect.signature(made.config_class.__init__).parameters) | set(made.config_class.attribute_map)
    config = made.config_class(**{name: size for name, size in SIZES.items() if name in known} | FAMILIES[family])
    config._experts_implementation = "eager"
    torch.manual_seed(0)
    model = made(config).train()
    for parameter in model.parameters():
        if parameter.dim() == 2:
            nn.init.normal_(parameter, std=0.3)
    return model


def listen(model: nn.Module, family: str) -> dict[str, torch.Tensor]:
    """The choices as others than the probe are told them."""
    told: dict[str, torch.Tensor] = {}

    def hear_experts(name: str, args: Any, kwargs: Any) -> None:
        for part in (*args, *kwargs.values()):
            if isinstance(part, torch.Tensor) and not part.is_floating_point():
                told[name] = part.clone()

    for name, part in model.named_modules():
        if family in BY_LOGITS and name.endswith("router"):
            place = BY_LOGITS[family]
            part.register_forward_hook(
                lambda _module, _args, said, name=name, place=place: told.__setitem__(name, said[place].topk(2, dim=-1).indices)
            )
        elif name.endswith("experts"):
            part.register_forward_pre_hook(
                lambda _module, args, kwargs, name=name: hear_experts(name, args, kwargs), with_kwargs=True
            )
    return told


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("family", FAMILIES)
def test_counts_are_what_the_experts_of_a_family_were_given(family: str) -> None:
    with watching() as watched:
        model = make_model(family)
        told = listen(model, family)
        model(input_ids=torch.randint(3, 64, (2, 16)))
        watched.end_step()
        rows = watched.last()
        assert told
        names = watched.read().names
        counted = {names[row.layer].rpartition(".")[0].removesuffix(".mlp"): row for row in rows}
        assert len(counted) == len(rows) == len(told)
        expected = [count_plainly([ids], len(rows[0].counts)) for ids in told.values()]
        assert sorted(row.counts for row in rows) == sorted(expected)
        assert {row.dropped for row in rows} == {0.0}


@pytest.mark.filterwarnings("ignore")
def test_the_masks_of_switch_say_what_was_kept() -> None:
    from transformers import SwitchTransformersConfig  # noqa: PLC0415
    from transformers.models.switch_transformers.modeling_switch_transformers import (  # noqa: PLC0415
        SwitchTransformersTop1Router,
    )

    with watching() as watched:
        router = SwitchTransformersTop1Router(SwitchTransformersConfig(d_model=4, num_experts=4, expert_capacity=2))
        model = nn.Sequential(router)
        with torch.no_grad():
            router.classifier.weight.copy_(torch.eye(4))
        router(torch.eye(4)[[0, 0, 0, 1, 2, 2, 2, 2]].unsqueeze(0))
        watched.end_step()
        row = watched.last()[0]
        assert (row.counts, row.counts_are_kept, row.dropped, row.tokens) == ((2, 1, 2, 0), True, 3.0, 8.0)
        assert model.training
