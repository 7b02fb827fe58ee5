"""The sums of one layer over the passes of one step, on the router's own device.

Cost: four small operations a pass, some more where a capacity is known, and twenty in every `SAMPLED_EVERY`-th step, in which
logits are looked at: on an idle CPU 20 us a pass, 250 us in those steps (512 tokens, 8 experts). None of them waits for the
device. In memory: a few hundred bytes and 8 an expert.
"""

from collections.abc import Callable
from typing import Any

import torch

from .reading import Choice

SAMPLED_EVERY = 8
"""Entropy and z are known of every so-manieth step only, aux loss and loads of all."""

DROPPED, PREDICTED, ENTROPY, Z, SAMPLED, AUX, GRADIENT, LOSS, FIRST = range(9)
"""The cells of a row. With `FIRST` the counts begin; behind those of the experts lie those of numbers out of range."""
_LEAST = 1e-30
_LARGEST_SCORE = 1.01


class Seen:
    """What the host knows of a layer's passes in one step, without asking the device."""

    __slots__ = ("capacity", "kept_only", "passes", "predicted", "tokens", "wanted", "with_aux", "with_drops", "with_loss")

    def __init__(self) -> None:
        self.passes = self.tokens = self.wanted = self.capacity = 0.0
        self.predicted = self.with_drops = self.with_aux = self.with_loss = self.kept_only = 0


class Layer:
    """One layer. ``row`` is its part of the sums; another one takes its place when the device or the width changes.

    ``module`` gives the router or its weight, None if it is gone or there is none. ``is_settled``: it is frozen by choice;
    ``is_moved``: an optimizer holds its weight. ``norm`` and ``has_none`` are of the optimizer's last step (`gradients.py`).
    """

    def __init__(self, number: int, name: str, width: int) -> None:
        self.number, self.name, self.width = number, name, width
        self.experts = self.top_k = self.ep_size = 0
        self.is_frozen = self.is_settled = self.leaves_out_drops = False
        self.is_moved = self.has_none = False
        self.frozen_steps = 0
        self.norm: torch.Tensor | None = None
        self.knows_drops = True
        self.module: Callable[[], Any] = _nothing
        self.seen = Seen()
        self.direct_step = -1
        self.row: torch.Tensor | None = None
        self._cells: torch.Tensor | None = None
        self._ones = torch.ones(0, dtype=torch.float64)

    def has_room(self, experts: int) -> bool:
        """Whether the row has place for so many experts."""
        return FIRST + cells_for(experts) <= self.width

    def place(self, device: torch.device) -> torch.Tensor:
        """The row, on this device."""
        row = self.row
        if row is None or row.device != device:
            old, row = row, torch.zeros(self.width, dtype=torch.float64, device=device)
            if old is not None and old.numel() == row.numel():
                row.copy_(old, non_blocking=True)
            self.row, self._cells = row, row[FIRST:]
        return row

    def widen(self, width: int) -> None:
        """Makes room for more experts."""
        self.width, old = width, self.row
        if old is not None:
            self.row = torch.zeros(width, dtype=old.dtype, device=old.device)
            self.row[: old.numel()].copy_(old, non_blocking=True)
            self._cells = self.row[FIRST:]

    def add(self, row: torch.Tensor, choice: Choice, *, is_sampled: bool) -> None:
        """Adds one pass."""
        seen, ids, counts = self.seen, choice.ids, choice.counts
        experts = choice.experts
        if FIRST + cells_for(experts) > row.numel():
            return
        if ids is not None and choice.capacity is None:
            self._scatter(row[FIRST:], ids, experts)
        elif ids is not None:
            own = torch.zeros_like(row[FIRST:])
            self._scatter(own, ids, experts)
            row[FIRST:].add_(own)
            counts = own[:experts]
        elif counts is not None:
            counts = counts.to(row.device, torch.float64, non_blocking=True)
            row[FIRST : FIRST + experts].add_(counts)
        _add_drops(row, choice, counts)
        self._note(choice)
        if choice.aux_loss is not None and choice.aux_loss.numel() == 1:
            row[AUX].add_(choice.aux_loss.reshape(()))
            seen.with_aux += 1
        if is_sampled and choice.logits is not None:
            _add_logits(row, choice.logits, experts)

    def add_ids(self, ids: torch.Tensor) -> None:
        """The same for a pass like the one before, of which nothing but the choices is looked at."""
        seen, cells = self.seen, self._cells
        if cells is not None:
            count = self._scatter(cells, ids, self.experts)
            seen.passes += 1
            seen.tokens += count // ids.shape[-1]
            seen.wanted += count
            seen.with_drops += self.knows_drops

    def _scatter(self, cells: torch.Tensor, ids: torch.Tensor, experts: int) -> int:
        """Adds 1 for each id, and says how many there are.

        A number that stands for a choice that was dropped (-1, E, or the largest there is) gets a place behind the experts: for
        one that is out of range a GPU would end the process.
        """
        flat = ids.reshape(-1)
        places = (flat if flat.dtype == torch.int64 else flat.long()).bitwise_and(cells_for(experts) - 1)
        count = flat.shape[0]
        if self._ones.shape[0] != count or self._ones.device != flat.device:
            self._ones = torch.ones(1, dtype=torch.float64, device=flat.device).expand(count)
        cells.scatter_add_(0, places, self._ones)
        return count

    def _note(self, choice: Choice) -> None:
        seen = self.seen
        self.experts, self.top_k, self.knows_drops = choice.experts, choice.top_k or self.top_k, choice.knows_drops
        self.leaves_out_drops = choice.leaves_out_drops
        seen.passes += 1
        seen.tokens += choice.tokens
        seen.wanted += choice.tokens * choice.top_k
        seen.with_drops += choice.knows_drops
        seen.kept_only += choice.is_kept_only
        if choice.capacity is not None:
            seen.capacity += choice.capacity
            seen.predicted += not choice.is_kept_only


def cells_for(experts: int) -> int:
    """How many counts a row keeps for so many experts: a power of 2, and more than there are experts."""
    return int(1 << experts.bit_length())


def _nothing() -> None:
    """In the place of a router that is gone."""


def _add_drops(row: torch.Tensor, choice: Choice, counts: torch.Tensor | None) -> None:
    if choice.dropped is not None:
        row[DROPPED].add_(choice.dropped)
    if counts is None:
        return
    if choice.kept is not None:
        row[DROPPED].add_(counts.sum() - choice.kept)
    if choice.predicted is not None:
        row[PREDICTED].add_(choice.predicted)
    elif choice.capacity is not None and not choice.is_kept_only:
        row[PREDICTED].add_((counts - choice.capacity).clamp_min_(0).sum())


def _add_logits(row: torch.Tensor, logits: torch.Tensor, experts: int) -> None:
    """Entropy and z. What lies from 0 to 1, and not all at 0, are scores: their shares are the probabilities, z is unknown."""
    rows = logits.reshape(-1, experts).float()
    least, largest = rows.aminmax()
    are_scores = (least >= 0) & (largest > 0) & (largest <= _LARGEST_SCORE)
    shares = rows / rows.sum(-1, keepdim=True).clamp_min(_LEAST)
    chances = torch.where(are_scores, shares, rows.softmax(-1))
    row[ENTROPY].sub_((chances * chances.clamp_min(_LEAST).log()).sum())
    row[Z].add_(torch.where(are_scores, torch.nan, rows.logsumexp(-1).square().sum()))
    row[SAMPLED].add_(rows.shape[0])
