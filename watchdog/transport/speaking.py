"""What a node says: whole lines, by one thread at a time, one answer to each request."""

import os
import select
import threading
from collections.abc import Iterable

from pardbg.watchdog.model.names import AbsenceReason
from pardbg.watchdog.transport.lines import HEARD, encode_answer, encode_greeting, encode_refusal
from pardbg.watchdog.transport.printable import printable

STUCK_S = 120.0
"""For so long whoever reads may take nothing in before it counts as gone."""


class Speaker:
    """Writes answers to a descriptor. ``is_broken``: nobody reads there any more."""

    def __init__(self, output: int, node: str) -> None:
        self._output = output
        self.node = node
        self._lock = threading.Lock()
        self._owed: set[int] = set()
        self.is_broken = False

    def greet(self) -> None:
        """Says that the node has come up."""
        with self._lock:
            self._write([encode_greeting(self.node)])

    def say_heard(self) -> None:
        """Says that requests arrive, unless an answer is being written: that says it too."""
        if self._lock.acquire(blocking=False):
            try:
                self._write([encode_greeting(self.node, HEARD)])
            finally:
                self._lock.release()

    def owe(self, request_id: int) -> None:
        """A request has come, and an answer to it will be due."""
        self._owed.add(request_id)

    def is_owed(self, request_id: int) -> bool:
        """Whether a request has had no answer so far."""
        return request_id in self._owed

    def answer(self, request_id: int, data: bytes) -> None:
        """Writes an answer, unless the request has had one."""
        with self._lock:
            if self._settle(request_id):
                self._write(encode_answer(request_id, self.node, data))

    def refuse(self, request_id: int, reason: AbsenceReason, detail: str) -> None:
        """Writes why there is no answer, unless the request has had one."""
        with self._lock:
            if self._settle(request_id):
                self._write([encode_refusal(request_id, self.node, reason, printable(detail))])

    def refuse_if_free(self, request_id: int, reason: AbsenceReason, detail: str) -> None:
        """As `refuse`, but never waits: an answer that is being written says more."""
        if self._lock.acquire(blocking=False):
            try:
                if self._settle(request_id):
                    self._write([encode_refusal(request_id, self.node, reason, detail)])
            finally:
                self._lock.release()

    def _settle(self, request_id: int) -> bool:
        is_owed = request_id in self._owed
        self._owed.discard(request_id)
        return is_owed

    def _write(self, lines: Iterable[bytes]) -> None:
        """Writes lines, each in one piece where the pipe is one."""
        try:
            for line in lines:
                sent = 0
                while sent < len(line):
                    if not select.select([], [self._output], [], STUCK_S)[1]:
                        raise TimeoutError
                    sent += os.write(self._output, line[sent:])
        except OSError:
            self.is_broken = True
