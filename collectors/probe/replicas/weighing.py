"""Fingerprints of parameters: the sum of their bits as integers, on their device. Exact, so the order of summing is nothing.

A bit that flips changes the sum of its parameter, if it is among the numbers that are looked at: the first `MOST_ON` of each.
Cost: two or three small operations a parameter, and one reading of what is looked at.
"""

from collections.abc import Sequence
from typing import Any

import torch

MOST_ON = {"cpu": 2**12, "cuda": 2**20}
"""Numbers of one parameter, by kind of device; others are not looked at."""
_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def find_fitting(parameters: Sequence[Any]) -> list[int]:
    """The places of those that can be looked at: trainable, plain and on one device, of a kind that need not be waited for."""
    plain = [place for place, parameter in enumerate(parameters) if _is_plain(parameter)]
    device = parameters[plain[0]].device if plain else None
    if device is None or device.type not in MOST_ON:
        return []
    return [place for place in plain if parameters[place].device == device]


def spread(places: Sequence[int], most: int) -> list[int]:
    """Of many some, spread over all."""
    return [places[number * len(places) // most] for number in range(most)] if len(places) > most else list(places)


def weigh(parameters: Sequence[torch.Tensor]) -> torch.Tensor:
    """A sum for each, int64, on their device. Call it without gradients."""
    return torch.stack([view_integers(_cut(parameter.detach())).sum(dtype=torch.int64) for parameter in parameters])


def count_seen(parameter: torch.Tensor) -> int:
    """How many numbers of it are looked at."""
    return int(_cut(parameter.detach()).numel())


def view_integers(tensor: torch.Tensor) -> torch.Tensor:
    """The same bits as integers of the same size."""
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    return tensor.view(_INTEGERS[tensor.element_size()]) if tensor.is_floating_point() else tensor


def _cut(tensor: torch.Tensor) -> torch.Tensor:
    """Its first rows, without a copy."""
    most, count = MOST_ON[tensor.device.type], tensor.numel()
    if count <= most:
        return tensor
    while tensor.dim() > 1 and tensor.shape[0] * most < count:  # a row is too much
        tensor = tensor[0]
        count = tensor.numel()
    return tensor[: max(1, tensor.shape[0] * most // count)] if count > most else tensor


def _is_plain(parameter: Any) -> bool:
    is_own = type(parameter) is torch.nn.Parameter and parameter.layout is torch.strided
    return is_own and parameter.requires_grad and parameter.numel() > 0
