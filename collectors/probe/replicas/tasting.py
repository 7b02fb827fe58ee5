"""A fingerprint of what a model is fed: a hash of some numbers of the tensors in its arguments, on their device.

It is not the data, and the data cannot be had from it. What is not understood as a whole - an object that is no tensor, list
or mapping might hold the batch itself - has no fingerprint; nor have tensors that say little, like ones or a mask.
Cost: some six small operations a tensor, for the `MOST_TENSORS` largest that lie on one device.
"""

import zlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import torch

from .weighing import view_integers

MOST_TENSORS = 8
MOST_NUMBERS = 1024
"""Numbers of one tensor that are looked at, spread over all its dimensions: some more or less."""
LEAST_NUMBERS = 32
LEAST_CHANGES = 16
"""Numbers that differ from the one before them. Data has many."""
_DEEPEST = 4
_PLAIN = (str, bytes, int, float, bool, complex, type(None))


class Taste(NamedTuple):
    """A hash and the number of changes, int64 [2], on the device; ``form`` is a digest of shapes and types."""

    told: torch.Tensor
    form: int


class _StrangeError(Exception):
    """Something that is not understood."""


def taste(arguments: tuple[Any, ...], named: Mapping[str, Any]) -> Taste | None:
    """That of these arguments; None if they are not understood. Call it without gradients."""
    try:
        tensors = list(_find_tensors((arguments, named), 0))
    except _StrangeError:
        return None
    largest = sorted(tensors, key=torch.Tensor.numel, reverse=True)[:MOST_TENSORS]
    chosen = [tensor for tensor in largest if tensor.device == largest[0].device and tensor.numel()]
    if sum(tensor.numel() for tensor in chosen) < LEAST_NUMBERS:
        return None
    form = ";".join(f"{tuple(tensor.shape)}{tensor.dtype}" for tensor in tensors)
    numbers = torch.cat([view_integers(_spread(tensor.detach())).reshape(-1).to(torch.int64) for tensor in chosen])
    places = torch.arange(1, numbers.numel() + 1, device=numbers.device)
    mixed = (numbers ^ (places * 0x9E3779B97F4A7C1)) * 0x2545F4914F6CDD1D
    changes = (numbers[1:] != numbers[:-1]).sum()
    return Taste(torch.stack([(mixed ^ (mixed >> 29)).sum(), changes]), zlib.crc32(form.encode()))


def digest(told: tuple[int, int], form: int) -> int:
    """The fingerprint, 0 if the tensors say too little."""
    summed, changes = told
    if changes < LEAST_CHANGES:
        return 0
    return zlib.crc32((summed % 2**64).to_bytes(8, "little"), form) or 1


def _find_tensors(value: Any, depth: int) -> Iterator[torch.Tensor]:
    if type(value) is torch.Tensor or type(value) is torch.nn.Parameter:
        if value.layout is not torch.strided or value.is_quantized:
            raise _StrangeError
        yield value
    elif isinstance(value, _PLAIN):
        return
    elif depth >= _DEEPEST or not isinstance(value, list | tuple | Mapping):
        raise _StrangeError
    else:
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _find_tensors(part, depth + 1)


def _spread(tensor: torch.Tensor) -> torch.Tensor:
    """Every so manieth of each dimension, without a copy: wherever the contents lie, some of them are there."""
    left, cut = float(MOST_NUMBERS), []
    for place, size in enumerate(tensor.shape):
        wanted = max(1, round(left ** (1 / (tensor.dim() - place))))
        step = -(-size // wanted)
        cut.append(slice(None, None, step))
        left = max(1.0, left / -(-size // step))
    return tensor[tuple(cut)]
