"""Which modules are routers, and what their attributes say: by the end of the class's name, whoever wrote the class.

Covers transformers (``MixtralTopKRouter``, ``DeepseekV3TopkRouter``, ... and the plain ``gate`` of older releases; by name
those that answer with logits but not with choices, or with masks: ``Llama4Router``, ``JetMoeTopKGating``, ``DbrxRouter``,
...), Megatron-Core (``TopKRouter``), torchtitan and DeepSpeed AutoEP (``TokenChoiceTopKRouter``), DeepSpeed (``TopKGate``),
FastMoE (``GShardGate``, ...), MegaBlocks (``LearnedRouter``) and Tutel (``MOELayer``, whose gates answer with logits alone).
"""

import re
from typing import Any, NamedTuple

import torch

_ROUTER = re.compile(
    r"(?:Router|Top[Kk]Gat(?:e|ing)|MoEGate|MoeGate|MoEV1Gate|NaiveGate|NoisyGate|GShardGate|SwitchGate|SwipeGate)$"
)
_SOFTMAX_BLOCK = re.compile(r"^(?:Mixtral|Qwen2Moe|Qwen3Moe|Olmoe)SparseMoeBlock$")
_LOGITS_LAST = re.compile(r"^(?:Llama4Router|DbrxRouter|JetMoeTopKGating|GraniteMoe\w*TopKGating)$")
_BALANCING = {"none", "aux_loss", "seq_aux_loss", "global_aux_loss"}
_EXPERTS = ("num_experts", "n_routed_experts", "num_local_experts", "tot_expert", "num_moe_experts", "moe_num_experts")
_TOP_K = (
    "top_k",
    "topk",
    "num_experts_per_tok",
    "moe_router_topk",
    "moe_top_k",
    "k",
    "num_experts_per_token",
    "top_k_experts",
)
_CAPACITY = ("capacity", "capacity_factor", "expert_capacity", "expert_capacity_factor", "moe_capacity_factor")
_EP_SIZE = ("ep_size", "expert_model_parallel_size", "ep_world_size")
_MOST_EXPERTS = 65536

BY_SHAPE, GATE_OF_DEEPSPEED, LAYER_OF_TUTEL, LOGITS_LAST, NOT_LAST_WORD, MASKS = range(6)
"""How to read it. `LOGITS_LAST`: the k largest logits are the choices. `NOT_LAST_WORD`: by shape, but drops come after it.
`MASKS`: numbers, [.., E], that are not 0 where an expert was chosen and has taken the token."""
_KINDS = {
    "TopKGate": GATE_OF_DEEPSPEED,
    "MOELayer": LAYER_OF_TUTEL,
    "Linear": LOGITS_LAST,
    "LearnedRouter": NOT_LAST_WORD,
    "SwitchTransformersTop1Router": MASKS,
}

UNTOLD, LOGITS, SOFTMAX, SIGMOID = range(4)
"""What a router chooses the largest of."""


class Traits(NamedTuple):
    """What is known of a router before it answers. 0: not known.

    ``is_padded``: its map is the mask of capacity itself, rows without a token included. ``capacity_factor`` is Megatron's, 0
    for none, and ``scores`` how it gets the scores of which the largest are chosen, `UNTOLD` if that is not known
    (`asking.py`).
    """

    kind: int
    experts: int
    top_k: int
    ep_size: int
    is_padded: bool = False
    capacity_factor: float = 0
    scores: int = UNTOLD

    @property
    def may_drop(self) -> bool:
        """Whether its map lacks what was dropped."""
        return self.capacity_factor > 0 or self.kind == MASKS


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
    if kind == BY_SHAPE and _drops_later(parent):
        kind = NOT_LAST_WORD
    places = [place for place in (module, parent) if place is not None]
    places += [place for owner in tuple(places) for place in (getattr(owner, "config", None), getattr(owner, "args", None))]
    config = getattr(module, "config", None)
    experts = _first(_EXPERTS, places)
    experts += _first(("zero_expert_num",), places)  # LongCat: experts that compute nothing can be chosen, too
    if kind == LAYER_OF_TUTEL:
        experts = int(getattr(module, "num_global_experts", 0)) or experts
    return Traits(
        kind=kind,
        experts=experts or _rows_of_weight(module),
        top_k=1 if kind == MASKS else _first(_TOP_K, [*getattr(module, "gates", ()), *places]),
        ep_size=_first(_EP_SIZE, places) or _size_of_mesh(parent),
        is_padded=bool(getattr(config, "moe_pad_expert_input_to_capacity", False)),
        capacity_factor=getattr(config, "moe_expert_capacity_factor", None) or 0,
        scores=_scores_of(module, config),
    )


def find_weight(module: Any) -> Any:
    """The parameter that makes the logits, None if there is none of its own. A program may report the weight itself."""
    if isinstance(module, torch.Tensor):
        return module
    own = module._parameters.get("weight")  # noqa: SLF001 - asked for in every step, and three times as fast
    if own is not None:
        return own
    return next((parameter for parameter in module.parameters() if parameter.dim() == 2), None)


def _kind_of(module: Any) -> int:
    own = type(module).__name__
    return LOGITS_LAST if _LOGITS_LAST.match(own) else _KINDS.get(own, BY_SHAPE)


def _drops_later(parent: Any) -> bool:
    """Whether the layer around a router has a capacity of its own: what it drops is not in the router's answer."""
    values = (getattr(place, name, None) for place in (parent, getattr(parent, "config", None)) for name in _CAPACITY)
    return any(isinstance(value, int | float) and value > 0 for value in values)


def _scores_of(module: Any, config: Any) -> int:
    """Of Megatron's router: whatever moves choices apart from the scores is not known here."""
    moved = (
        "moe_router_num_groups",
        "moe_router_topk_limited_devices",
        "moe_router_enable_expert_bias",
        "moe_enable_routing_replay",
    )
    if any(getattr(config, name, None) for name in moved) or getattr(module, "expert_bias", None) is not None:
        return UNTOLD
    balancing = getattr(config, "moe_router_load_balancing_type", "none")
    kinds = {balancing} if isinstance(balancing, str) else set(balancing)
    if not kinds <= _BALANCING:
        return UNTOLD
    score = getattr(config, "moe_router_score_function", "softmax")
    is_before = bool(getattr(config, "moe_router_pre_softmax", False))
    return {("softmax", False): LOGITS, ("softmax", True): SOFTMAX, ("sigmoid", is_before): SIGMOID}.get(
        (score, is_before), UNTOLD
    )


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
