"""From the layers of a step to the file `routing`: what the host knows and what the device says are brought together."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from ..routing_format import NAME_SIZE, LayerLine
from .copying import Copier, Sums
from .figuring import Noted, Totals, find_loss, make_figures
from .freezing import note_frozen
from .gradients import NOTHING, Gradients
from .layer import FIRST, GRADIENT, Layer, Seen
from .lineage import Lineage
from .writing import RoutingWriter

_NAN = float("nan")


class _Step(NamedTuple):
    number: int
    ended_ns: int
    layers: tuple[Noted, ...]
    places: tuple[int, ...]


_Traits = tuple[int, int, int, bool, bool, bool]
"""What a line of the table says of a layer but for its name, which stays."""


class Publisher:
    """The file of one process, made when the first step has ended, and anew when there are other layers."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._copier = Copier()
        self._gradients = Gradients()
        self._writer: RoutingWriter | None = None
        self._lines: list[LayerLine] = []
        self._traits: list[_Traits] = []
        self._last = torch.zeros(0, dtype=torch.int64)
        self._experts = 0

    def note_step(self, optimizer: Any, layers: Sequence[Layer], lineage: Lineage) -> None:
        """An optimizer, counted or not, has stepped. ``lineage`` knows which module holds a router."""
        note_frozen(layers, lineage)
        self._gradients.note_step(optimizer, layers)

    def publish(self, layers: Sequence[Layer], number: int, ended_ns: int) -> None:
        """Sends the step on its way, and writes those that have arrived."""
        device = next((layer.row.device for layer in layers if layer.row is not None), torch.device("cpu"))
        rows = [layer.row if layer.row is not None else layer.place(device) for layer in layers]
        norms = self._gradients.collect(layers, device)
        noted = tuple(Noted(layer.seen, layer.experts, layer.top_k) for layer in layers)
        self._copier.take(rows, norms.known, _Step(number, ended_ns, noted, norms.places))
        for layer in layers:
            layer.seen = Seen()
        traits = [_traits_of(layer) for layer in layers]
        if traits != self._traits:
            self._change([_line_of(layer) for layer in layers])
            self._traits = traits
        for sums in self._copier.finished():
            self._write(sums)

    def _change(self, lines: list[LayerLine]) -> None:
        """A file has room for so many layers and experts; what else is said of a layer may change in its place."""
        most, former = (max((line.experts for line in some), default=0) for some in (lines, self._lines))
        if self._writer is not None and len(lines) == len(self._lines) and most == former:
            for place, (line, old) in enumerate(zip(lines, self._lines, strict=True)):
                if line != old:
                    self._writer.write_line(place, line)
        else:
            retired, self._writer = self._writer, None
            self._writer = RoutingWriter(self._path, lines, most)
            if retired is not None:
                retired.retire()
        self._lines, self._experts = lines, most
        self._last = torch.tensor([max(0, line.experts - 1) for line in lines]).unsqueeze(1)

    def _write(self, sums: Sums) -> None:
        step: _Step = sums.note
        rows, noted = sums.rows, step.layers
        if self._writer is None or len(noted) != len(self._lines):  # the file was made anew in between
            return
        heads, sums_so_far = rows[:, :FIRST].tolist(), rows[:, FIRST:].cumsum(1)
        totals, kept = sums_so_far[:, -1].tolist(), sums_so_far.gather(1, self._last).squeeze(1).tolist()
        norms = [heads[place][GRADIENT] if place >= 0 else 0.0 if place == NOTHING else _NAN for place in step.places]
        figures = [
            (*make_figures(head, Totals(own, total - own), layer), norm)
            for head, total, own, layer, norm in zip(heads, totals, kept, noted, norms, strict=True)
        ]
        loss = next(
            (find_loss(head, layer.seen) for head, layer in zip(heads, noted, strict=True) if layer.seen.with_loss), _NAN
        )
        counts = rows[:, FIRST : FIRST + self._experts]
        self._writer.write_step((step.number, step.ended_ns, loss), figures, counts)


def _traits_of(layer: Layer) -> _Traits:
    return layer.experts, layer.top_k, layer.ep_size, layer.is_frozen, layer.leaves_out_drops, layer.is_settled


def _line_of(layer: Layer) -> LayerLine:
    name = layer.name.encode(errors="replace")[-NAME_SIZE:]
    known = layer.number, layer.experts, layer.top_k, layer.ep_size
    return LayerLine(*known, layer.is_frozen, name, layer.leaves_out_drops, layer.is_settled)
