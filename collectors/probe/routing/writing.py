"""The writer of the file `routing` (`routing_format.py`): of one set of layers. Another set gets another file in its place.

Cost: about 30 us a step and 1 us a layer. The memory is given to the file beforehand, as for the page.
"""

import mmap
import os
import struct
import time
from collections.abc import Sequence
from itertools import chain

import torch

from .. import routing_format as form


class RoutingWriter:
    """The file. It lies under its name once it is whole."""

    def __init__(self, path: str, lines: Sequence[form.LayerLine], experts: int) -> None:
        """Makes it in the place of a former one. ``experts``: the most that a layer has.

        Raises:
            OSError: if there is no room for it, or it cannot be made.
            ValueError: if nobody would read it, so large is it.
        """
        self._slots = form.count_slots(len(lines), experts)
        header = form.Header(os.getpid(), time.time_ns(), len(lines), experts, self._slots)
        if not form.is_sane(header):
            raise ValueError(f"routing of {len(lines)} layers with {experts} experts is too much for its file: not published")
        self._layout = form.lay_out(len(lines), experts, self._slots)
        self._map = _make_file(path + ".new", self._layout.size)
        self._version = self._step_count = 0
        self._figures = struct.Struct(f"<{len(lines) * form.FIGURE_COUNT}d")
        self._counts = _view_counts(self._map, self._layout, (self._slots, len(lines), experts))
        for place, line in enumerate(lines):
            self.write_line(place, line)
        self._map[: form.HEADER_SIZE] = form.encode_header(header)
        os.replace(path + ".new", path)

    def write_line(self, place: int, line: form.LayerLine) -> None:
        """Writes one row of the table anew."""
        self._version = form.next_version(self._version)
        data = form.encode_line(line, self._version)
        start = form.TABLE_AT + place * form.ROW_SIZE
        self._map[start : start + len(data)] = data

    def write_step(self, head: tuple[int, int, float], figures: Sequence[Sequence[float]], counts: torch.Tensor) -> None:
        """Writes one step: its number, its end (epoch ns) and its loss; figures by layer; counts [layers, experts]."""
        layout, start = self._layout, self._layout.slot_at(self._step_count, self._slots)
        self._version = version = form.next_version(self._version)
        self._figures.pack_into(self._map, start + layout.figures_at, *chain.from_iterable(figures))
        self._counts[self._step_count % self._slots].copy_(counts)
        slot_head = form.SlotHead(self._step_count, *head)
        with memoryview(self._map) as whole, whole[start + layout.figures_at : start + layout.slot_size] as rest:
            data = form.encode_slot_head(slot_head, rest, version)
        self._map[start : start + len(data)] = data
        self._step_count += 1
        note = form.encode_note(self._step_count, version)
        self._map[form.NOTE_AT : form.NOTE_AT + len(note)] = note

    def retire(self) -> None:
        """Tells those who hold it open that another file has taken its place."""
        self._map[: form.HEADER_SIZE] = bytes(form.HEADER_SIZE)


def _make_file(path: str, size: int) -> mmap.mmap:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, size)
        return mmap.mmap(descriptor, size)
    finally:
        os.close(descriptor)


def _view_counts(mapped: mmap.mmap, layout: form.Layout, shape: tuple[int, int, int]) -> torch.Tensor:
    """The counts of all slots as one tensor: [slots, layers, experts]."""
    numbers = torch.frombuffer(mapped, dtype=torch.int32)
    size = form.COUNT_SIZE
    strides = (layout.slot_size // size, shape[2], 1)
    return numbers.as_strided(shape, strides, (layout.ring_at + layout.counts_at) // size)
