"""Puts requests to the nodes of a job, one round after the other, and remembers who has not answered, and why.

Deadline: that of each round. Ctrl-C ends a round and all later ones: what has come until then is given.
"""

import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Protocol

from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.evidence import Absence
from pardbg.watchdog.model.host_names import fold_hosts_briefly
from pardbg.watchdog.model.names import AbsenceReason
from pardbg.watchdog.scan.nodes.checking import check_reply
from pardbg.watchdog.scan.nodes.messages import Failed, Find, Reply, Request, TakeSample, decode_reply, encode
from pardbg.watchdog.transport.answer import Answer

ON_THE_WAY_S = 1.0
"""What an answer may take beyond the time that its node was given."""
_MOST_REASONS = 3


class Talk(Protocol):
    """What is needed of a `Conversation`."""

    @property
    def nodes(self) -> tuple[str, ...]:
        """All nodes."""

    def ask(self, data: bytes, until_s: float, nodes: Collection[str] | None = None) -> Iterable[Answer]:
        """One answer of each node that is asked (None: all), or why there is none, by a moment on the monotonic clock."""


class Rounds:
    """All rounds of a scan.

    Attributes:
        nodes: all that can be asked.
        absent: nodes that have not answered what they were asked last, and why; and those that are never asked.
        is_interrupted: Ctrl-C has come while a round was on its way.
    """

    def __init__(self, conversation: Talk, unreached: Mapping[str, Absence]) -> None:
        """Asks nothing yet. ``unreached``: nodes of the job that the conversation leaves out, and why."""
        self.nodes = conversation.nodes
        self.absent: dict[str, Absence] = dict(unreached)
        self.is_interrupted = False
        self._conversation = conversation
        self._unreached = unreached
        self._missed: dict[str, Absence] = {}
        self._searched: set[str] = set()
        self._is_out_of_time = False

    def start_over(self) -> None:
        """Forgets who was absent: the job is looked for anew."""
        self.absent = dict(self._unreached)
        self._missed.clear()
        self._searched.clear()

    def ask(self, request: Request, until_s: float, nodes: Collection[str]) -> dict[str, Reply]:
        """The replies by node; if Ctrl-C ends the round, those of a sample, or of who has the job, that have come so far.

        Raises:
            KeyboardInterrupt: if it has ended another, or an earlier round.
        """
        if self.is_interrupted:
            raise KeyboardInterrupt
        replies: dict[str, Reply] = {}
        if time.monotonic() >= until_s:
            self._is_out_of_time = True
            return replies
        until_s = min(until_s, time.monotonic() + request.within_s + ON_THE_WAY_S)
        try:
            for answer in self._conversation.ask(encode(request), until_s, nodes):
                self._note(answer, replies)
        except KeyboardInterrupt:
            self.is_interrupted = True
            why = Absence(reason=AbsenceReason.SKIPPED, detail="interrupted before it had answered")
            self.absent = {node: why for node in nodes if node not in replies} | self.absent
            if not isinstance(request, Find | TakeSample):
                raise
        if isinstance(request, Find):
            self._searched |= replies.keys()
        return dict(sorted(replies.items()))

    @property
    def remarks(self) -> tuple[str, ...]:
        """How many nodes have answered and which have not; what else is missing."""
        return tuple(self._tell())

    def describe(self) -> str:
        """Those that answer, in words."""
        return f"the {self._count() - len(self.absent.keys() - self._searched)} of {self._count()} nodes that answered"

    def _note(self, answer: Answer, replies: dict[str, Reply]) -> None:
        reply = answer.absence or _read(answer.data or b"")
        if isinstance(reply, Absence):
            before = self.absent.get(answer.node, reply)  # of two silences the first says more
            self.absent[answer.node] = before if reply.reason is AbsenceReason.TIMED_OUT else reply
            return
        replies[answer.node] = reply
        if why := self.absent.pop(answer.node, None):
            self._missed.setdefault(answer.node, why)

    def _tell(self) -> Iterator[str]:
        if self.absent:
            yield f"{self._tell_answers()}, missing {fold_hosts_briefly(self.absent)}: {_tell_reasons(self.absent.values())}"
        if missed := {node: why for node, why in self._missed.items() if node not in self.absent}:
            yield f"a part of what was asked of {fold_hosts_briefly(missed)} is missing: {_tell_reasons(missed.values())}"
        if self._is_out_of_time:
            yield "the time was up (--timeout) before the nodes had been asked for everything"

    def _tell_answers(self) -> str:
        """A node that has said which ranks it has, and no more, has answered."""
        told = f"{self._count() - len(self.absent)} of {self._count()} nodes answered"
        heard = self._count() - len(self.absent.keys() - self._searched)
        return (
            f"{told} what was asked last ({heard} of {self._count()} the search for the job)"
            if self._searched & self.absent.keys()
            else told
        )

    def _count(self) -> int:
        return len(self.nodes) + len(self._unreached)


def _tell_reasons(absences: Iterable[Absence]) -> str:
    reasons = Counter(absence.detail for absence in absences)
    return "; ".join(f"{detail} ({count})" for detail, count in reasons.most_common(_MOST_REASONS))


def _read(data: bytes) -> Reply | Absence:
    try:
        reply = decode_reply(data)
        check_reply(reply)
    except ParseError as error:
        return Absence(reason=AbsenceReason.UNREADABLE, detail=str(error))
    return Absence(reason=AbsenceReason.UNSUPPORTED, detail=reply.problem) if isinstance(reply, Failed) else reply
