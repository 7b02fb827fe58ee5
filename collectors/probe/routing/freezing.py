"""Which routers are told to take no gradient, and whether that looks meant: with all of the block, or most of the model.

Fine-tuning freezes whole layers, or all but adapters. A router that is frozen while the experts beside it train is another
thing. Cost: a look at a flag a router and step; of a frozen one at first and every `_CHECKED_EVERY` steps a walk over the
parameters of its block, or of the model: some 100 us a thousand.
"""

from collections.abc import Sequence
from typing import Any

from .layer import Layer
from .lineage import Lineage
from .recognising import find_weight

_CHECKED_EVERY = 64


def note_frozen(layers: Sequence[Layer], lineage: Lineage) -> None:
    """Sets ``is_frozen`` and ``is_settled``."""
    for layer in layers:
        module: Any = layer.module()
        weight = find_weight(module) if module is not None else None
        if weight is None or weight.requires_grad:
            layer.is_frozen, layer.is_settled, layer.frozen_steps = False, False, 0
            continue
        layer.is_frozen = True
        if layer.frozen_steps % _CHECKED_EVERY == 0:
            layer.is_settled = _is_settled(module, weight, lineage)
        layer.frozen_steps += 1


def _is_settled(module: Any, weight: Any, lineage: Lineage) -> bool:
    block = lineage.parent_of(module)
    if block is None:
        return False
    others = [part for part in block.parameters() if part is not weight]
    if others and not any(part.requires_grad for part in others):
        return True
    whole = list(lineage.root_of(block).parameters())
    frozen = sum(int(part.numel()) for part in whole if not part.requires_grad)
    return 2 * frozen > sum(int(part.numel()) for part in whole)
