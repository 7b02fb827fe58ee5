"""What a router's answer says: of the tensors in it, by their kind and shape, which are the choices and which the logits.

Order differs between frameworks and releases, shapes do not: integers whose last dimension is k are chosen experts, booleans
whose last dimension is E are a map, floats whose last dimension is E are logits or scores. Pure: no tensor's content is looked
at, so nothing waits for a device.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from .recognising import GATE_OF_DEEPSPEED, LAYER_OF_TUTEL, LOGITS_LAST, MASKS, NOT_LAST_WORD, Traits

_INTEGERS = frozenset({"torch.int64", "torch.int32", "torch.int16", "torch.uint8", "torch.int8"})
_OLDER_GATE, NEWER_GATE = 4, 7


class Choice(NamedTuple):
    """What one pass chose. None: not known.

    Attributes:
        experts: how many there are.
        tokens: rows that were routed.
        top_k: choices a token.
        ids: chosen experts, [.., k]; numbers out of range stand for choices that were dropped.
        counts: choices of each expert, in place of ``ids``: before drops where the framework says so.
        kept: how many choices were kept, where ``counts`` are those before drops: a tensor of one number.
        is_kept_only: ``counts`` are what is left after drops: tokens times k less their sum was dropped.
        leaves_out_drops: what this router drops is not counted, but where ``predicted`` is known.
        predicted: drops by counts and capacity; NaN where they turned out not to be known.
        capacity: choices that one expert takes in this pass.
        logits: [.., E].
        aux_loss: of this layer alone.
    """

    experts: int
    tokens: int
    top_k: int
    ids: torch.Tensor | None = None
    counts: torch.Tensor | None = None
    kept: torch.Tensor | None = None
    dropped: torch.Tensor | None = None
    is_kept_only: bool = False
    leaves_out_drops: bool = False
    predicted: torch.Tensor | None = None
    knows_drops: bool = True
    capacity: float | None = None
    logits: torch.Tensor | None = None
    aux_loss: torch.Tensor | None = None


def tensors_of(answer: Any) -> list[Any]:
    """The tensors of an answer, those of this rank where they are spread over ranks; a placeholder for what is none."""
    parts = answer if isinstance(answer, tuple | list) else (answer,)
    return [_here(part) if isinstance(part, torch.Tensor) else part for part in parts]


def with_capacity(said: Sequence[torch.Tensor], capacity: int) -> list[Any]:
    """The parts of an answer of which a compiled operation has got the tensors, and the number of DeepSpeed's newer gate."""
    if capacity > 0 and len(said) == NEWER_GATE - 2:
        return [said[0], capacity, said[-1].shape[0], *said[1:]]
    return list(said)


def read_choice(parts: Sequence[Any], traits: Traits, asked: torch.Tensor | None = None) -> Choice | None:
    """Reads an answer; None if it is none that is understood. ``asked``: what was wanted before drops (`asking.py`)."""
    if traits.kind == GATE_OF_DEEPSPEED:
        return _read_gate_of_deepspeed(parts)
    if traits.kind == LAYER_OF_TUTEL:
        return _read_tutel(parts, traits)
    tensors = [part.detach() for part in parts if isinstance(part, torch.Tensor)]
    if traits.kind == LOGITS_LAST:
        return _choose_again(tensors[-1], traits) if tensors else None
    if traits.kind == MASKS:
        return _read_map([part.bool() for part in tensors if _is_integer(part)], traits, None)
    return _read_ids(tensors, traits) or _read_map(tensors, traits, asked)


def _read_ids(tensors: Sequence[torch.Tensor], traits: Traits) -> Choice | None:
    experts = traits.experts or max((part.shape[-1] for part in tensors if _is_float(part)), default=0)
    found = [part for part in tensors if _is_integer(part) and 0 < part.shape[-1] <= experts]
    exact = [part for part in found if part.shape[-1] == traits.top_k]
    if not exact and len(found) != 1:
        return None
    ids = (exact or found)[0]
    if ids.shape[-1] == experts and traits.top_k != experts:  # a map of numbers
        return None
    tokens = ids.numel() // ids.shape[-1]
    return Choice(
        experts=experts,
        tokens=tokens,
        top_k=ids.shape[-1],
        ids=ids,
        knows_drops=traits.kind != NOT_LAST_WORD,
        leaves_out_drops=traits.kind != NOT_LAST_WORD,
        logits=_find_logits(tensors, experts, tokens) if len(tensors) > 2 else None,  # of two they are scores with holes
    )


def _read_map(tensors: Sequence[torch.Tensor], traits: Traits, asked: torch.Tensor | None) -> Choice | None:
    maps = [part for part in tensors if part.dtype == torch.bool and part.dim() >= 2]
    if len(maps) != 1 or maps[0].shape[-1] != (traits.experts or maps[0].shape[-1]):
        return None
    experts = maps[0].shape[-1]
    chosen = maps[0].reshape(-1, experts)
    if traits.is_padded:  # to the capacity: rows without a token have no probability
        scores = next((part for part in tensors if _is_float(part) and part.shape == maps[0].shape), None)
        if scores is None:
            return None
        chosen = chosen & (scores.reshape(-1, experts) > 0)
    choice = Choice(
        experts=experts,
        tokens=chosen.shape[0],
        top_k=traits.top_k,
        counts=chosen.sum(0),
        is_kept_only=traits.may_drop,
        leaves_out_drops=traits.may_drop,
        knows_drops=not traits.may_drop or traits.top_k > 0,
        capacity=_capacity_of(chosen.shape[0], traits),
    )
    return choice if asked is None or choice.capacity is None else _before_drops(choice, chosen, asked)


def _capacity_of(tokens: int, traits: Traits) -> float | None:
    """As Megatron-Core rounds it."""
    if not traits.capacity_factor or not traits.top_k or not traits.experts:
        return None
    return math.ceil(tokens * traits.top_k / traits.experts * traits.capacity_factor)


def _before_drops(choice: Choice, kept: torch.Tensor, asked: torch.Tensor) -> Choice:
    """The same choice with the counts of what was asked for. Not if something was kept that was not asked for."""
    if choice.counts is None or choice.capacity is None or asked.shape != (choice.tokens, choice.top_k):
        return choice
    wanted = torch.zeros_like(kept).scatter_(1, asked, value=True)
    is_strange = (kept & ~wanted).any()
    counts = torch.where(is_strange, choice.counts, wanted.sum(0))
    over = (counts - choice.capacity).clamp_min_(0).sum()
    return choice._replace(
        counts=counts,
        dropped=asked.numel() - choice.counts.sum(),
        predicted=torch.where(is_strange, torch.nan, over.double()),
        is_kept_only=False,
    )


def _read_gate_of_deepspeed(parts: Sequence[Any]) -> Choice | None:
    """``(l_aux, combine_weights, dispatch_mask, exp_counts)``, or of 7: ``(l_aux, C, E, indices, .., exp_counts)``."""
    if len(parts) == _OLDER_GATE and all(isinstance(part, torch.Tensor) for part in parts):
        aux, _, mask, counts = (part.detach() for part in parts)
        if mask.dim() != 3 or counts.shape != mask.shape[1:2]:
            return None
        # the mask says which were kept; k is not in the answer
        tokens, experts, capacity = mask.shape
        return Choice(experts, tokens, 0, counts=counts, kept=mask.sum(), capacity=capacity, aux_loss=aux)
    if len(parts) == NEWER_GATE and isinstance(parts[3], torch.Tensor) and isinstance(parts[6], torch.Tensor):
        indices, counts = parts[3], parts[6].detach()
        aux = parts[0].detach() if isinstance(parts[0], torch.Tensor) else None
        capacity = float(parts[1]) if isinstance(parts[1], int | float) else None
        top_k, tokens = indices.shape
        dropped = (indices < 0).sum()
        return Choice(counts.shape[0], tokens, top_k, counts=counts, dropped=dropped, capacity=capacity, aux_loss=aux)
    return None


def _read_tutel(parts: Sequence[Any], traits: Traits) -> Choice | None:
    """The parts are the layer's ``dispatch_count``, before capacity, and ``l_aux``, and the rows of its input."""
    counts, aux, tokens = parts
    if not isinstance(counts, torch.Tensor) or counts.dim() != 1:
        return None
    loss = aux.detach() if isinstance(aux, torch.Tensor) else None
    return Choice(counts.shape[0], tokens, traits.top_k, counts=counts.detach(), knows_drops=False, aux_loss=loss)


def _choose_again(logits: torch.Tensor, traits: Traits) -> Choice | None:
    """Of a plain linear gate, and of those that hide their choices: scores rise with logits, so the largest are the choices."""
    experts = logits.shape[-1]
    if not 0 < traits.top_k <= experts or logits.dim() < 2:
        return None
    ids = logits.float().topk(traits.top_k, dim=-1).indices
    return Choice(experts, ids.numel() // traits.top_k, traits.top_k, ids=ids, logits=logits)


def _find_logits(tensors: Sequence[torch.Tensor], experts: int, tokens: int) -> torch.Tensor | None:
    fitting = [part for part in tensors if _is_float(part) and part.shape[-1] == experts and part.numel() == tokens * experts]
    return fitting[0] if fitting else None


def _here(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to_local() if type(tensor).__name__ == "DTensor" else tensor  # type: ignore[attr-defined]


def _is_integer(tensor: torch.Tensor) -> bool:
    return tensor.dim() >= 2 and str(tensor.dtype) in _INTEGERS


def _is_float(tensor: torch.Tensor) -> bool:
    return tensor.dim() >= 2 and tensor.is_floating_point()
