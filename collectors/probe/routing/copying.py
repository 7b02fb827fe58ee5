"""Takes the sums of a step to the host without waiting for the device: a copy on a stream of its own, asked for later.

Cost: three small operations a step for all layers together. Where the device is more than `MOST_WAITING` steps behind the
host, steps are left out. On a CPU the sums are there at once.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch

from .layer import GRADIENT

MOST_WAITING = 4


class Sums(NamedTuple):
    """One step: a row of each layer, on the host, and whatever was noted of the step."""

    rows: torch.Tensor
    note: Any


class _Waiting(NamedTuple):
    sums: Sums
    staged: torch.Tensor  # kept until it was copied: its memory is not to be used again before
    event: Any


class Copier:
    """The copies that are on their way. ``asynchronous``: kinds of devices whose copies are asked for later."""

    def __init__(self, asynchronous: frozenset[str] = frozenset({"cuda"})) -> None:
        self._asynchronous = asynchronous
        self._waiting: deque[_Waiting] = deque()
        self._spare: list[torch.Tensor] = []
        self._stream: Any = None

    def take(self, rows: Sequence[torch.Tensor], gradients: torch.Tensor | None, note: Any) -> None:
        """Begins to copy the rows, and sets them to zero. The norms of gradients go with the first rows, whosever they are."""
        with torch.no_grad():
            device = rows[0].device
            staged = torch.stack([row if row.device == device else row.to(device, non_blocking=True) for row in rows])
            torch._foreach_zero_(list(rows))
            if gradients is not None:
                staged[: len(gradients), GRADIENT].copy_(gradients, non_blocking=True)
            self.send(staged, note)

    def send(self, staged: torch.Tensor, note: Any) -> None:
        """Begins to copy what nobody else will change."""
        if staged.device.type not in self._asynchronous:
            self._waiting.append(_Waiting(Sums(staged.cpu(), note), staged, None))
        elif len(self._waiting) < MOST_WAITING:
            self._waiting.append(self._begin(staged, note))

    @property
    def is_waiting(self) -> bool:
        """Whether something is on its way, or has arrived and was not asked for."""
        return bool(self._waiting)

    def finished(self) -> Iterator[Sums]:
        """Those that have arrived, oldest first."""
        while self._waiting and (self._waiting[0].event is None or self._waiting[0].event.query()):
            sums, _, event = self._waiting.popleft()
            yield sums
            if event is not None and len(self._spare) < MOST_WAITING:
                self._spare.append(sums.rows)

    def _begin(self, staged: torch.Tensor, note: Any) -> _Waiting:
        cuda = torch.cuda
        if self._stream is None or self._stream.device != staged.device:
            self._stream = cuda.Stream(device=staged.device)  # type: ignore[no-untyped-call]
        host = self._spare.pop() if self._spare else None
        if host is None or host.shape != staged.shape:
            host = torch.empty(staged.shape, dtype=staged.dtype, pin_memory=True)
        self._stream.wait_stream(cuda.current_stream(staged.device))
        with cuda.stream(self._stream):
            host.copy_(staged, non_blocking=True)
            event = cuda.Event()  # type: ignore[no-untyped-call]
            event.record(self._stream)
        return _Waiting(Sums(host, note), staged, event)
