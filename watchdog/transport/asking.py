"""One request on its way: whom it still waits for, and what each line that is heard means for it."""

import time
from collections.abc import Iterator

from pardbg.watchdog.model.names import AbsenceReason
from pardbg.watchdog.transport.answer import Answer
from pardbg.watchdog.transport.assembling import Assembly
from pardbg.watchdog.transport.channel import Channel
from pardbg.watchdog.transport.lines import GREETING_ID, HEARD, PROTOCOL, Part, Stranger, decode_answer_line, encode_request
from pardbg.watchdog.transport.patience import Patience
from pardbg.watchdog.transport.peers import Peers
from pardbg.watchdog.transport.printable import printable


class Asking:
    """Request ``request_id``, worth something until ``until_s`` (monotonic)."""

    def __init__(self, request_id: int, packed: bytes, until_s: float, nodes: tuple[str, ...] | None, peers: Peers) -> None:
        """Asks ``nodes``, or all peers (None).

        Raises:
            KeyError: if a node is none of the peers.
            ValueError: if the request is too long to be sent.
        """
        asked = peers.nodes if nodes is None else nodes
        self.until_s = until_s
        self._asked_s = time.monotonic()
        self._packed = packed
        self._nodes = nodes
        self._peers = peers
        self._waited_for = peers.worth_waiting_for(asked)
        are_all_overdue = all(map(peers.is_overdue, self._waited_for))
        self.patience = Patience(self._waited_for, self._asked_s, is_short=are_all_overdue)
        self._assembly = Assembly(request_id, asked)
        self.line()

    @property
    def open(self) -> list[str]:
        """Nodes that have neither answered nor been given up."""
        return self._assembly.open

    @property
    def lasts_s(self) -> float:
        """How long it waits at most."""
        return max(self.until_s - self._asked_s, 0.0)

    @property
    def waited_for(self) -> list[str]:
        """Open nodes that are worth waiting for."""
        return list(self._waited_for)

    def is_open(self, node: str) -> bool:
        """Whether a node has neither answered nor been given up."""
        return self._assembly.is_open(node)

    def progress(self, node: str) -> str:
        """How much has come of its answer, in words."""
        return self._assembly.progress(node) if self.is_open(node) else ""

    def line(self) -> bytes:
        """The request, with the time that is left for it now."""
        left_s = max(self.until_s - time.monotonic(), 0.0)
        return encode_request(self._assembly.request_id, self._packed, left_s, self._nodes)

    def refuse_lost(self) -> Iterator[Answer]:
        """The answers of nodes that earlier requests have lost."""
        for node in self.open:
            if loss := self._peers.loss(node):
                yield self._close(node, *loss)

    def hear(self, channel: Channel, line: bytes) -> Iterator[Answer]:
        """What a line of a channel settles."""
        said = decode_answer_line(line)
        if said is None:
            channel.set_aside(line)
        elif said.node not in channel.nodes:
            yield from self._hear_other(channel, line, said)
        elif isinstance(said, Stranger):
            yield from self.lose(said.node, AbsenceReason.UNSUPPORTED, _describe_version(said))
        elif said.id == GREETING_ID:
            self._note_sign(channel, said.node)
            channel.is_heard = channel.is_heard or said.detail == HEARD
        else:
            self._note_sign(channel, said.node)
            channel.is_heard = True
            yield from self._take(channel, line, said)

    def lose(self, node: str, reason: AbsenceReason, detail: str) -> Iterator[Answer]:
        """A node is gone for this request and all later ones."""
        if node in self._peers:
            self._peers.lose(node, reason, detail)
            if node in self._waited_for:
                self.patience.note_loss(time.monotonic())
            if self.is_open(node):
                yield self._close(node, reason, detail)

    def give_up(self, node: str, reason: AbsenceReason, detail: str) -> Answer:
        """The time is over for a node; the next request does not wait for it."""
        if self._peers.is_overdue(node):
            detail = f"it had not answered an earlier request, so this one did not wait for it: {detail}"
        self._peers.set_overdue(node, is_overdue=True)
        return self._close(node, reason, detail)

    def _note_sign(self, channel: Channel, node: str) -> None:
        channel.greet(node)
        self.patience.note_sign(node, time.monotonic())

    def _take(self, channel: Channel, line: bytes, part: Part) -> Iterator[Answer]:
        is_wanted = self.is_open(part.node) and part.id == self._assembly.request_id
        is_late = part.reason == AbsenceReason.TIMED_OUT.value
        if not is_late:
            self._peers.set_overdue(part.node, is_overdue=False)
        if not is_wanted:
            channel.waste(line)
            if self.is_open(part.node) and not is_late:
                self._waited_for.add(part.node)
            return
        for answer in self._assembly.take(part):
            self._waited_for.discard(answer.node)
            started_s, up_s = max(self._asked_s, channel.started_s), max(self._asked_s, channel.greeted_s)
            self.patience.note_answer(started_s, up_s, time.monotonic())
            if is_late:
                self._peers.set_overdue(answer.node, is_overdue=True)
            yield answer

    def _hear_other(self, channel: Channel, line: bytes, said: Part | Stranger) -> Iterator[Answer]:
        """A line in the name of a node that is not at the other end."""
        channel.set_aside(line)
        if len(channel.nodes) > 1:
            return
        (node,) = channel.nodes
        if isinstance(said, Stranger):
            yield from self.lose(node, AbsenceReason.UNSUPPORTED, _describe_version(said))
        elif self.is_open(node):
            yield self._close(node, AbsenceReason.UNREADABLE, f"it answers in the name of {printable(said.node)!r}")

    def _close(self, node: str, reason: AbsenceReason, detail: str) -> Answer:
        self._waited_for.discard(node)
        return self._assembly.refuse(node, reason, detail)


def _describe_version(said: Stranger) -> str:
    spoken = printable(said.pardbg, 40)
    remedy = "start the same pardbg there (--remote-command, or PARDBG_REMOTE)"
    return f"its pardbg speaks {spoken!r} and this one {PROTOCOL!r}: {remedy}"
