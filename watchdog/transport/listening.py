"""What a node hears: requests as they come, and that nobody is there any more. Runs in a thread beside the handler's."""

import os
import select
import time
from collections.abc import Callable

from pardbg.watchdog.model.names import AbsenceReason
from pardbg.watchdog.transport.lines import (
    GREETING_ID,
    LONGEST_REQUEST_BYTES,
    PROTOCOL,
    Request,
    Stranger,
    decode_request,
    unpack,
)
from pardbg.watchdog.transport.speaking import Speaker
from pardbg.watchdog.transport.splitting import LineSplitter

LARGEST_REQUEST_BYTES = 16 * 1024**2

_INPUT = 0
_READ_BYTES = 64 * 1024
_ROUND_S = 0.25
_LONGEST_S = 3600.0


class Listener:
    """Reads requests from standard input and hands those for this node on."""

    def __init__(self, speaker: Speaker, hand_on: Callable[[Request], None], idle_s: float) -> None:
        self._speaker = speaker
        self._hand_on = hand_on
        self._idle_s = idle_s
        self._parent = os.getppid()
        self._lines = LineSplitter(LONGEST_REQUEST_BYTES)
        self._due_s: dict[int, float] = {}
        self._wanted_until_s = time.monotonic()

    def listen(self) -> None:
        """Returns when there is nobody left to answer."""
        while self._is_wanted():
            if select.select([_INPUT], [], [], _ROUND_S)[0]:
                data = os.read(_INPUT, _READ_BYTES)
                if not data:
                    return
                for line in self._lines.feed(data):
                    self._hear(line)
            self._excuse_late()

    def _is_wanted(self) -> bool:
        is_idle = time.monotonic() > self._wanted_until_s + self._idle_s
        return not (is_idle or self._speaker.is_broken or os.getppid() != self._parent)

    def _hear(self, line: bytes) -> None:
        request = decode_request(line)
        if isinstance(request, Stranger):
            self._refuse_version(request)
        elif request is None or (request.nodes is not None and self._speaker.node not in request.nodes):
            return
        elif request.id == GREETING_ID:
            self._speaker.say_heard()
        else:
            self._accept(request)

    def _accept(self, request: Request) -> None:
        within_s = min(max(request.within_s, 0.0), _LONGEST_S)
        now_s = time.monotonic()
        self._wanted_until_s = max(self._wanted_until_s, now_s + within_s)
        self._speaker.owe(request.id)
        try:
            data = unpack(request.data, LARGEST_REQUEST_BYTES)
        except ValueError as error:
            self._speaker.refuse_if_free(request.id, AbsenceReason.UNREADABLE, f"the request cannot be used: {error}")
            return
        self._due_s[request.id] = now_s + _margin(within_s)
        self._hand_on(Request(pardbg=PROTOCOL, id=request.id, data=data, within_s=within_s))

    def _excuse_late(self) -> None:
        """Says of requests whose time is nearly over that their answer is not ready; what has come of them is dropped then."""
        for request_id, due_s in list(self._due_s.items()):
            if not self._speaker.is_owed(request_id):
                del self._due_s[request_id]
            elif time.monotonic() > due_s:
                self._speaker.refuse_if_free(
                    request_id, AbsenceReason.TIMED_OUT, "it is up and hears, and its answer is not ready in time"
                )

    def _refuse_version(self, stranger: Stranger) -> None:
        if isinstance(stranger.id, int) and 0 < stranger.id < 2**53:
            self._speaker.owe(stranger.id)
            detail = f"asked in {stranger.pardbg[:40]!r}, and it speaks {PROTOCOL!r}: start the same pardbg on both sides"
            self._speaker.refuse_if_free(stranger.id, AbsenceReason.UNSUPPORTED, detail)


def _margin(within_s: float) -> float:
    """When to say that an answer is late, so that it is heard in time."""
    return max(within_s - 1.0, 0.8 * within_s)
