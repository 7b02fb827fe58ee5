"""The norms of the gradients of the routers' weights, on their device, when an optimizer has stepped: they are still there.

Where the gradient lies differs: with the parameter, in Megatron in ``main_grad``. Of a weight that is spread over ranks only
the part on this rank is measured. With ZeRO there is none: not known. Cost: one operation for all layers.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from .layer import Layer
from .recognising import find_weight

NOT_KNOWN, NOTHING = -1, -2
"""In the place of a place: no gradient to be had, and none there where others have one."""


class Norms(NamedTuple):
    """The norms that are known, and for each layer its place among them, or `NOT_KNOWN` or `NOTHING`."""

    known: torch.Tensor | None
    places: tuple[int, ...]


def measure_gradients(layers: Sequence[Layer], device: torch.device) -> Norms:
    """The norms, on this device.

    A router that has run but has no gradient has one of 0, where that of another shows that they are to be had.
    """
    known: list[torch.Tensor] = []
    places = []
    for layer in layers:
        module = layer.module()
        gradient = _gradient_of(module)
        if gradient is not None:
            places.append(len(known))
            known.append(gradient)
        else:
            places.append(NOTHING if layer.seen.passes and module is not None else NOT_KNOWN)
    if not known:
        return Norms(None, (NOT_KNOWN,) * len(places))
    norms: Sequence[torch.Tensor] = torch._foreach_norm(known)  # noqa: SLF001 - one operation for all of them
    if any(norm.device != device or norm.dtype != norms[0].dtype for norm in norms):
        norms = [norm.to(device, torch.float64, non_blocking=True) for norm in norms]
    return Norms(torch.stack(list(norms)), tuple(places))


def _gradient_of(module: Any) -> torch.Tensor | None:
    weight = find_weight(module) if module is not None else None
    gradient: Any = getattr(weight, "grad", None)
    if gradient is None:
        gradient = getattr(weight, "main_grad", None)
    if type(gradient).__name__ == "DTensor":
        gradient = gradient.to_local()
    if type(gradient) is not torch.Tensor or gradient.numel() == 0 or not gradient.is_floating_point():
        return None
    return gradient
