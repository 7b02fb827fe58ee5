"""Fingerprints of parameters: the sum of their bits as integers, on their device. Exact, so the order of summing is nothing.

A bit that flips changes the sum of its parameter, if it is among the numbers that are looked at: the first `MOST_ON` of each.
Cost: two or three small operations a parameter, and one reading of what is looked at.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import torch

MOST_ON = {"cpu": 2**12, "cuda": 2**20}
"""Numbers of one parameter, by kind of device; others are not looked at."""
Cut = tuple[int | slice, ...]
"""The part of a parameter that is looked at, as an index; empty for all of it."""
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


def weigh(parameters: Iterable[torch.Tensor], cuts: Iterable[Cut]) -> torch.Tensor:
    """A sum for each, int64, on their device. Call it without gradients."""
    parts = (view_integers(take(parameter, cut)) for parameter, cut in zip(parameters, cuts, strict=True))
    return torch.stack([part.sum(dtype=torch.int64) for part in parts])


def take(parameter: torch.Tensor, cut: Cut) -> torch.Tensor:
    """What is looked at, without a copy."""
    own = parameter.detach()
    return own[cut] if cut else own


def find_cut(parameter: torch.Tensor) -> Cut:
    """What of it is looked at: as many of its first rows as may be, or of the first of them, if one is too much."""
    most, count, shape, cut = MOST_ON[parameter.device.type], parameter.numel(), parameter.shape, []
    if count <= most:
        return ()
    for size in shape[:-1]:
        if size * most >= count:
            break
        cut.append(0)
        count //= size
    size = shape[len(cut)]
    return (*cut, slice(max(1, size * most // count)))


def view_integers(tensor: torch.Tensor) -> torch.Tensor:
    """The same bits as integers of the same size."""
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    return tensor.view(_INTEGERS[tensor.element_size()]) if tensor.is_floating_point() else tensor


def _is_plain(parameter: Any) -> bool:
    is_own = type(parameter) is torch.nn.Parameter and parameter.layout is torch.strided
    return is_own and parameter.requires_grad and parameter.numel() > 0
