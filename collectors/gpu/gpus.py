"""The GPUs of this machine, read once a second by a child process, and the last 15 minutes of each.

What it does to the job: nothing; NVML is read, no setting is touched. Privilege: none, where /dev/nvidia* may be opened.
A driver may hang in any call: a child that is silent for `SILENCE_S` is given up, and the next one leaves the GPU alone that
did not answer; after `MOST_LOST` children NVML is left alone. What it leaves behind: such children, until the driver lets go.
Cost with eight GPUs of 18 NVLinks at one sample a second, over 60 s, against the stand-in of tests/gpu: 0.19 % of a processor
(0.06 % here, 0.13 % in the child) besides what the driver itself takes; 15.6 MB in the child, 12 of them its own, 0.6 MB here.
"""

import contextlib
import threading
import time
from types import TracebackType

from pardbg.collectors.gpu.cards import Cards, CardSample
from pardbg.collectors.gpu.child import NvmlChild, find_nvml_binding
from pardbg.collectors.gpu.messages import (
    NOT_INSTALLED,
    CardLost,
    Message,
    Opened,
    Reading,
    Refused,
    Xid,
    explain_refusal,
)
from pardbg.collectors.gpu.points import KEPT_S, GpuPoint
from pardbg.watchdog.model.device import XidSeen
from pardbg.watchdog.model.evidence import Absence
from pardbg.watchdog.model.names import AbsenceReason

PERIOD_S = 1.0
SILENCE_S = 10.0  # some calls take a second where the driver has to wake a GPU
OPENING_S = 60.0  # without persistence mode the driver wakes every GPU first, some seconds each
MOST_LOST = 4
RETRY_S = 600.0  # a driver may be installed while we run
_NOT_YET = Absence(reason=AbsenceReason.TIMED_OUT, detail="NVML has not answered yet")


class Gpus:
    """Reads on in the background from `start` to `close`; every other method answers at once, from any thread."""

    def __init__(self, *, period_s: float = PERIOD_S, silence_s: float = SILENCE_S, opening_s: float = OPENING_S) -> None:
        """Starts nothing yet.

        Args:
            period_s: how far apart samples are.
            silence_s: how long a child may say nothing.
            opening_s: how long it may take to open NVML.
        """
        self._period_s, self._silence_s, self._opening_s = period_s, silence_s, opening_s
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._child: NvmlChild | None = None
        self._cards = Cards(period_s)
        self._absence: Absence | None = _NOT_YET
        self._driver: str | None = None
        self._order: tuple[int, ...] = ()
        self._last: int | None = None
        self._silent: set[int] = set()
        self._quiet_turns = 0
        self._lost_count = 0
        self._again_at_s = 0.0

    def __enter__(self) -> "Gpus":  # noqa: PYI034 - Self needs Python 3.11
        """Starts."""
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Closes."""
        self.close()

    def start(self) -> None:
        """Starts the child and the thread that listens to it; does not wait for either."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._listen, name="pardbg-gpus", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Ends both; waits at most a second or two."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        self._drop()

    @property
    def driver(self) -> str | None:
        """The driver's version, as far as NVML has told it."""
        return self._driver

    @property
    def pid(self) -> int | None:
        """The process id of the living child."""
        child = self._child
        return child.pid if child is not None else None

    @property
    def is_opening(self) -> bool:
        """Whether NVML has not answered at all yet."""
        return self._absence is _NOT_YET

    def latest(self) -> tuple[CardSample, ...]:
        """Every GPU as it was last seen, by index; those that are lost or silent say so."""
        with self._lock:
            return self._cards.samples

    def series(self, key: str, since_s: float = KEPT_S) -> tuple[GpuPoint, ...]:
        """The points of the last ``since_s`` seconds of a GPU (`CardSample.key`), oldest first."""
        with self._lock:
            return self._cards.series(key, since_s)

    def events(self) -> tuple[tuple[str, XidSeen], ...]:
        """The errors that the driver has reported since `start`, each with the key of its GPU, oldest first."""
        with self._lock:
            return self._cards.xids

    def absence(self) -> Absence | None:
        """Why no GPU can be seen; None if one can."""
        with self._lock:
            return self._absence

    def _listen(self) -> None:
        while True:
            self._turn()
            if self._stop.wait(self._period_s):
                return

    def _turn(self) -> None:
        """Hears what the child has said; replaces it if it is lost."""
        child = self._child
        if child is None:
            if time.monotonic() >= self._again_at_s:
                self._start_child()
            return
        messages = child.hear()
        self._quiet_turns = 0 if messages else self._quiet_turns + 1
        with self._lock:
            for message in messages:
                self._take(message)
        if self._child is None:
            return
        patience_s = self._silence_s if self._order else self._opening_s
        if child.is_over or self._quiet_turns * self._period_s > patience_s:  # turns, not time: we may have been stopped
            self._give_up(child)

    def _start_child(self) -> None:
        binding = find_nvml_binding()
        if binding is None:
            self._put_off(NOT_INSTALLED)
            return
        self._order, self._last, self._quiet_turns = (), None, 0
        try:
            self._child = NvmlChild(binding, period_s=self._period_s, skip=self._silent)
        except OSError as error:
            self._put_off(Absence(reason=AbsenceReason.UNREADABLE, detail=f"no process to read it with: {error.strerror}"))

    def _take(self, message: Message) -> None:
        if isinstance(message, Refused):
            self._drop()
            self._absence = explain_refusal(message)
            self._again_at_s = time.monotonic() + RETRY_S
        elif isinstance(message, Opened):
            self._driver = message.driver
            self._cards.open(message, self._silent)
            self._order = tuple(card.index for card in message.cards if not card.problem and card.index not in self._silent)
            empty = Absence(reason=AbsenceReason.EMPTY, detail="NVML sees no GPU here")
            self._absence = None if message.cards else empty
        else:
            self._cards.take(message)
            self._note_order(message)

    def _note_order(self, message: Reading | CardLost | Xid) -> None:
        if not isinstance(message, Xid):
            self._last = message.index

    def _give_up(self, child: NvmlChild) -> None:
        """Whoever comes after the last that was heard is the one that does not answer."""
        self._lost_count += 1
        died = "the process that reads it died" if child.is_over else f"no answer within {self._silence_s:g} s"
        self._drop()
        with self._lock:
            self._blame(died, is_silent=not child.is_over)
        if self._lost_count >= MOST_LOST:
            detail = f"NVML: {died}, for the {MOST_LOST}th time; it is not asked any more"
            self._put_off(Absence(reason=AbsenceReason.TIMED_OUT, detail=detail), for_s=float("inf"))

    def _blame(self, died: str, *, is_silent: bool) -> None:
        if not self._order:
            self._absence = Absence(reason=AbsenceReason.TIMED_OUT, detail=f"NVML cannot be opened: {died}")
            return
        place = self._order.index(self._last) + 1 if self._last in self._order else 0
        index = self._order[place % len(self._order)]
        if is_silent:
            self._silent.add(index)
            self._cards.silence(index, f"{died}: the driver hangs")

    def _put_off(self, absence: Absence, *, for_s: float = RETRY_S) -> None:
        with self._lock:
            self._absence = absence
        self._again_at_s = time.monotonic() + for_s

    def _drop(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            with contextlib.suppress(OSError):
                child.end()
