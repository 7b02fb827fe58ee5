"""The norms of the gradients of the routers' weights, on their device, each read when the optimizer that moves it has stepped.

Then they are still there; when another optimizer steps they may be gone, or half made. Where the gradient lies differs: with
the parameter, in Megatron in ``main_grad``. Of a weight that is spread over ranks only the part on this rank is measured. An
optimizer may hold copies in place of the weights (Megatron, ZeRO): then what is there when the counted step ends is read, and
nothing means not known. Cost: one operation for all routers of an optimizer, and now and then a walk over its parameters.
"""

import weakref
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch

from .layer import Layer
from .recognising import find_weight

NOT_KNOWN, NOTHING = -1, -2
"""In the place of a place: no gradient to be had, and none there where others of the same optimizer have one."""
_CHECKED_EVERY = 64
"""Steps after which an optimizer's parameters are looked up anew, even if their number is the same."""


class Norms(NamedTuple):
    """The norms that are known, and for each layer its place among them, or `NOT_KNOWN` or `NOTHING`."""

    known: torch.Tensor | None
    places: tuple[int, ...]


class _Held:
    """The parameters of one optimizer, by identity: it keeps them alive."""

    def __init__(self) -> None:
        self.ids: frozenset[int] = frozenset()
        self._size = self._age = 0

    def refresh(self, optimizer: Any) -> None:
        size = sum(len(group["params"]) for group in optimizer.param_groups)
        if size != self._size or self._age % _CHECKED_EVERY == 0:
            self.ids, self._size = frozenset(map(id, _parameters_of(optimizer))), size
        self._age += 1


class Gradients:
    """Which optimizer moves which router, and what was read at its last step."""

    def __init__(self) -> None:
        self._held: weakref.WeakKeyDictionary[Any, _Held] = weakref.WeakKeyDictionary()

    def note_step(self, optimizer: Any, layers: Sequence[Layer]) -> None:
        """An optimizer has stepped: reads the gradients of its routers."""
        held = self._held.get(optimizer)
        if held is None:
            self._held[optimizer] = held = _Held()
        held.refresh(optimizer)
        weights = ((layer, weight_of(layer)) for layer in layers)
        own = [(layer, weight) for layer, weight in weights if weight is not None and id(weight) in held.ids]
        _measure(own)
        for layer, weight in own:
            layer.is_moved, layer.has_none = True, layer.norm is None and _should_have_one(layer, weight, optimizer)

    def collect(self, layers: Sequence[Layer], device: torch.device) -> Norms:
        """What was read since the last time, on this device."""
        _measure([(layer, weight_of(layer)) for layer in layers if not layer.is_moved])
        norms = [layer.norm for layer in layers if layer.norm is not None]
        places = iter(range(len(norms)))
        found = tuple(next(places) if layer.norm is not None else NOTHING if layer.has_none else NOT_KNOWN for layer in layers)
        for layer in layers:
            layer.norm, layer.has_none = None, False
        if any(norm.device != device or norm.dtype != norms[0].dtype for norm in norms):
            norms = [norm.to(device, torch.float64, non_blocking=True) for norm in norms]
        return Norms(torch.stack(norms) if norms else None, found)


def _measure(own: Sequence[tuple[Layer, Any]]) -> None:
    """Of a router that is frozen by choice nothing is to be known."""
    gradients = [(layer, None if layer.is_settled else _gradient_of(weight)) for layer, weight in own]
    known = [gradient for _, gradient in gradients if gradient is not None]
    norms = iter(torch._foreach_norm(known) if known else ())  # noqa: SLF001 - one operation for all of them
    for layer, gradient in gradients:
        layer.norm = None if gradient is None else next(norms)


def _should_have_one(layer: Layer, weight: Any, optimizer: Any) -> bool:
    """Whether none is nothing: the optimizer has not thrown its gradients away, and others have got one."""
    if layer.is_settled or weight.numel() == 0:
        return False
    return any(parameter.grad is not None for parameter in _parameters_of(optimizer))


def weight_of(layer: Layer) -> Any:
    """The router's weight, None if it is gone or there is none."""
    module = layer.module()
    return find_weight(module) if module is not None else None


def _gradient_of(weight: Any) -> torch.Tensor | None:
    """The part of a weight's gradient that is on this rank, None if there is none."""
    gradient: Any = getattr(weight, "grad", None)
    if gradient is None:
        gradient = getattr(weight, "main_grad", None)
    if type(gradient).__name__ == "DTensor":
        gradient = gradient.to_local()
    if type(gradient) is not torch.Tensor or gradient.numel() == 0 or not gradient.is_floating_point():
        return None
    return gradient


def _parameters_of(optimizer: Any) -> Iterator[Any]:
    return (parameter for group in optimizer.param_groups for parameter in group["params"])
