"""Which modules are routers, and what their attributes say: by the end of the class's name, whoever wrote the class.

Covers transformers (``MixtralTopKRouter``, ``DeepseekV3TopkRouter``, ... and the plain ``gate`` of older releases),
Megatron-Core (``TopKRouter``), torchtitan and DeepSpeed AutoEP (``TokenChoiceTopKRouter``), DeepSpeed (``TopKGate``), FastMoE
(``GShardGate``, ...), MegaBlocks (``LearnedRouter``) and Tutel (``MOELayer``, whose gates answer with logits alone).
"""

import re
from typing import Any, NamedTuple

_ROUTER = re.compile(r"(?:Router|Top[Kk]Gat(?:e|ing)|MoEGate|MoeGate|NaiveGate|NoisyGate|GShardGate|SwitchGate|SwipeGate)$")
_SOFTMAX_BLOCK = re.compile(r"^(?:Mixtral|Qwen2Moe|Qwen3Moe|Olmoe)SparseMoeBlock$")
_EXPERTS = ("num_experts", "n_routed_experts", "num_local_experts", "tot_expert", "num_moe_experts", "moe_num_experts")
_TOP_K = ("top_k", "topk", "num_experts_per_tok", "moe_router_topk", "moe_top_k", "k", "num_experts_per_token")
_EP_SIZE = ("ep_size", "expert_model_parallel_size", "ep_world_size")
_MOST_EXPERTS = 65536

BY_SHAPE, GATE_OF_DEEPSPEED, LAYER_OF_TUTEL, LINEAR_GATE, NOT_LAST_WORD = range(5)
"""How to read it. The last one: by shape, but drops come after it, and it does not know of them."""


class Traits(NamedTuple):
    """What is known of a router before it answers. 0: not known.

    ``is_padded``: its map is the mask of capacity itself, rows without a token included.
    """

    kind: int
    experts: int
    top_k: int
    ep_size: int
    is_padded: bool = False
    may_drop: bool = False


def is_router(parent: Any, name: str, module: Any) -> bool:
    """Whether a module that is being put into its parent by this name is to be listened to."""
    own = type(module).__name__
    if _ROUTER.search(own):
        return True
    if own == "MOELayer":
        return hasattr(module, "gates")
    return name == "gate" and own == "Linear" and _SOFTMAX_BLOCK.match(type(parent).__name__) is not None


def read_traits(module: Any, parent: Any) -> Traits:
    """What the attributes of a router, of its configuration and of the layer around it say."""
    kind = _kind_of(module)
    places = [place for place in (module, parent) if place is not None]
    places += [place for owner in tuple(places) for place in (getattr(owner, "config", None), getattr(owner, "args", None))]
    config = getattr(module, "config", None)
    experts = _first(_EXPERTS, places)
    if kind == LAYER_OF_TUTEL:
        experts = int(getattr(module, "num_global_experts", 0)) or experts
    return Traits(
        kind=kind,
        experts=experts or _rows_of_weight(module),
        top_k=_first(_TOP_K, [*getattr(module, "gates", ()), *places]),
        ep_size=_first(_EP_SIZE, places) or _size_of_mesh(parent),
        is_padded=bool(getattr(config, "moe_pad_expert_input_to_capacity", False)),
        may_drop=getattr(config, "moe_expert_capacity_factor", None) is not None,
    )


def find_weight(module: Any) -> Any:
    """The parameter that makes the logits, None if there is none of its own."""
    own = module._parameters.get("weight")  # noqa: SLF001 - asked for in every step, and three times as fast
    if own is not None:
        return own
    return next((parameter for parameter in module.parameters() if parameter.dim() == 2), None)


def _kind_of(module: Any) -> int:
    own = type(module).__name__
    kinds = {"TopKGate": GATE_OF_DEEPSPEED, "MOELayer": LAYER_OF_TUTEL, "Linear": LINEAR_GATE, "LearnedRouter": NOT_LAST_WORD}
    return kinds.get(own, BY_SHAPE)


def _first(names: tuple[str, ...], places: list[Any]) -> int:
    for place in places:
        for name in names:
            value = getattr(place, name, None)
            if type(value) is int and 0 < value <= _MOST_EXPERTS:
                return value
    return 0


def _rows_of_weight(module: Any) -> int:
    shape = tuple(getattr(find_weight(module), "shape", ()))
    return int(shape[0]) if len(shape) == 2 and 1 < shape[0] <= _MOST_EXPERTS else 0


def _size_of_mesh(parent: Any) -> int:
    """The experts' weights may lie on a mesh of devices with an axis ``ep``: torchtitan, transformers."""
    experts = getattr(parent, "experts", None)
    if experts is None or not hasattr(experts, "parameters"):
        return 0
    for parameter in experts.parameters():
        mesh = getattr(parameter, "device_mesh", None)
        names = getattr(mesh, "mesh_dim_names", None) or ()
        if mesh is not None and "ep" in names:
            return int(mesh.size(names.index("ep")))
    return 0
