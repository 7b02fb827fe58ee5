"""One look session: a `pardbg collect` of one scan, and the thread that speaks to it.

Cost: a child process of some 50 MB as long as it lasts. If ``uid`` is given, it looks at processes of that user alone. It ends
with the session; if the agent is killed, a moment later, since its input ends.
"""

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial

from pardbg.watchdog.model.names import AbsenceReason
from pardbg.watchdog.transport.answer import Answer, no_answer
from pardbg.watchdog.transport.conversation import Conversation
from pardbg.watchdog.transport.local import through_local
from pardbg.watchdog.transport.remote import collect_command
from pardbg.watchdog.transport.way import Way

LONGEST_S = 900.0
"""However busy it is: a scan takes a minute."""

_LEARN_S = 0.3
"""After a child was lost: who has ended it may be about to end the agent, too."""
_ENDED = "the agent has ended this look"
AGENT_ENDS = "the agent is ending"

_Question = tuple[bytes, float, "Future[Answer]"]


def way_to_self(node: str, uid: int | None) -> Way:
    """A child on this machine that looks at processes of ``uid`` alone, or of everybody (None)."""
    restricted = ("--uid", str(uid)) if uid is not None else ()
    return through_local((node,), (*collect_command(), *restricted))


class Session:
    """Ask it from any thread; end it."""

    def __init__(self, way: Way) -> None:
        """Starts the child. ``way`` has one node."""
        self._node = way.nodes[0]
        self._conversation = Conversation(way)
        self._is_ending, self._why = threading.Event(), _ENDED
        self._questions: queue.SimpleQueue[_Question | None] = queue.SimpleQueue()
        self.began_s = self.used_s = time.monotonic()
        self.is_busy = False
        self._thread = threading.Thread(target=self._serve, name="look", daemon=True)
        self._thread.start()

    def ask(self, data: bytes, until_s: float) -> "Future[Answer]":
        """Puts one request to the child; the answer comes by ``until_s`` (monotonic) or a moment later."""
        answer: Future[Answer] = Future()
        self.is_busy, self.used_s = True, time.monotonic()
        self._questions.put((data, until_s, answer))
        return answer

    def end(self, why: str = _ENDED) -> None:
        """Ends the child, also one that is at work, and says why. Does not wait for it: see `wait`."""
        if not self._is_ending.is_set():
            self._why = why
        self._is_ending.set()
        self._questions.put(None)
        self._conversation.interrupt()

    def wait(self, within_s: float) -> None:
        """Waits until it has ended."""
        self._thread.join(within_s)

    def _serve(self) -> None:
        with self._conversation as conversation:
            while (question := self._questions.get()) is not None:
                data, until_s, answer = question
                self._answer(partial(_ask, conversation, data, until_s), answer)
        with suppress(queue.Empty):
            while (question := self._questions.get_nowait()) is not None:
                question[2].set_result(no_answer(self._node, AbsenceReason.GONE, self._why))

    def _answer(self, find: Callable[[], Answer], answer: "Future[Answer]") -> None:
        if not answer.set_running_or_notify_cancel():
            return
        try:
            found = self._say_who_has_ended_it(find())
        except Exception as error:  # noqa: BLE001 - the thread must go on
            told = f"its agent failed: {type(error).__name__}"
            found = no_answer(self._node, AbsenceReason.UNREADABLE, told)
        self.is_busy, self.used_s = False, time.monotonic()
        answer.set_result(found)

    def _say_who_has_ended_it(self, found: Answer) -> Answer:
        """A service manager ends the children together with the agent."""
        is_lost = found.absence is not None and found.absence.reason in {AbsenceReason.LOST, AbsenceReason.UNREACHABLE}
        return no_answer(self._node, AbsenceReason.GONE, self._why) if is_lost and self._is_ending.wait(_LEARN_S) else found


def _ask(conversation: Conversation, data: bytes, until_s: float) -> Answer:
    (answer,) = conversation.ask(data, until_s)
    return answer
