"""The norms of the gradients of the routers' weights, on the device, when an optimizer has stepped: before they are set to zero.

Where the gradient lies differs: with the parameter, in Megatron in ``main_grad``. Of a weight that is spread over ranks only the
part of this rank is measured. With ZeRO it is nowhere to be had: not known. Cost: one operation for all layers.
"""

from collections.abc import Sequence
from typing import Any

import torch

from .layer import Layer
from .recognising import find_weight

_NAN = float("nan")


def measure_gradients(layers: Sequence[Layer], device: torch.device) -> torch.Tensor | None:
    """A norm for each layer, NaN where not known; None if none is known.

    A router that has run but has no gradient has one of 0, where that of another shows that they are to be had.
    """
    gradients = [_gradient_of(layer.module()) for layer in layers]
    known = [gradient for gradient in gradients if gradient is not None]
    if not known:
        return None
    norms = iter(torch._foreach_norm(known))  # noqa: SLF001 - one operation for all of them
    nowhere = torch.full((), _NAN, dtype=torch.float64, device=device)
    nothing = torch.zeros((), dtype=torch.float64, device=device)
    parts = [
        next(norms).to(device, torch.float64, non_blocking=True)
        if gradient is not None
        else nothing
        if layer.seen.passes and layer.module() is not None
        else nowhere
        for layer, gradient in zip(layers, gradients, strict=True)
    ]
    return torch.stack(parts)


def _gradient_of(module: Any) -> torch.Tensor | None:
    weight = find_weight(module) if module is not None else None
    gradient = getattr(weight, "grad", None)
    if gradient is None:
        gradient = getattr(weight, "main_grad", None)
    if type(gradient).__name__ == "DTensor":
        gradient = gradient.to_local()
    if type(gradient) is not torch.Tensor or gradient.numel() == 0 or not gradient.is_floating_point():
        return None
    return gradient
