"""Parts of the answers to one request -> answers: in any order, from any number of nodes, in bounded memory. Pure.

Whatever a node sends, it ends in one answer of that node or one reason, and takes nothing from the others.
"""

from collections.abc import Iterable

from pardbg.watchdog.model.names import AbsenceReason
from pardbg.watchdog.transport.answer import Answer, no_answer
from pardbg.watchdog.transport.lines import Part, unpack
from pardbg.watchdog.transport.printable import printable

LARGEST_PACKED_BYTES = 4 * 1024**2  # of one node's answer: 8 ranks x 8 KiB is the largest digest, stacks and entries take more
LARGEST_DATA_BYTES = 64 * 1024**2
MOST_PARTS = 64 * 1024
MOST_HELD_BYTES = 512 * 1024**2
"""Of unfinished answers together; beyond it the node that holds most is given up."""

_PART_COST_BYTES = 150  # of memory, besides its data


class _Pieces:
    """What has come of one node's answer."""

    def __init__(self) -> None:
        self.of = 0
        self.by_part: dict[int, bytes] = {}
        self.held_bytes = 0


class Assembly:
    """The answers to request ``request_id``; ``open`` are the nodes that have neither an answer nor a reason yet."""

    def __init__(self, request_id: int, nodes: Iterable[str]) -> None:
        self.request_id = request_id
        self._open = {node: _Pieces() for node in nodes}
        self._held_bytes = 0

    @property
    def open(self) -> list[str]:
        """Nodes without an answer so far."""
        return list(self._open)

    def is_open(self, node: str) -> bool:
        """Whether a node was asked and its answer has not come yet."""
        return node in self._open

    def progress(self, node: str) -> str:
        """How much has come of an answer, in words; empty if nothing."""
        pieces = self._open[node]
        return f"{len(pieces.by_part)} of {pieces.of} parts of its answer came" if pieces.by_part else ""

    def take(self, part: Part) -> list[Answer]:
        """The answers that a part completes: none, its node's, or the reason why a node can have none."""
        pieces = self._open.get(part.node)
        if pieces is None or part.id != self.request_id:
            return []
        if part.reason:
            return [self.refuse(part.node, _reason(part.reason), printable(part.detail))]
        if problem := _problem(part, pieces):
            return [self.refuse(part.node, AbsenceReason.UNREADABLE, problem)]
        return [] if part.part in pieces.by_part else self._keep(part, pieces)

    def refuse(self, node: str, reason: AbsenceReason, detail: str) -> Answer:
        """Closes a node with a reason."""
        self._close(node)
        return no_answer(node, reason, detail)

    def _keep(self, part: Part, pieces: _Pieces) -> list[Answer]:
        pieces.of = part.of
        pieces.by_part[part.part] = part.data
        size = len(part.data) + _PART_COST_BYTES
        pieces.held_bytes += size
        self._held_bytes += size
        if len(pieces.by_part) == pieces.of:
            return [self._finish(part.node)]
        if self._held_bytes > MOST_HELD_BYTES:
            return [self._give_up_largest()]
        return []

    def _finish(self, node: str) -> Answer:
        pieces = self._close(node)
        try:
            data = unpack(b"".join(pieces.by_part[part] for part in range(pieces.of)), LARGEST_DATA_BYTES)
        except ValueError as error:
            return no_answer(node, AbsenceReason.UNREADABLE, f"its answer cannot be used: {error}")
        return Answer(node=node, data=data)

    def _give_up_largest(self) -> Answer:
        largest = max(self._open, key=lambda node: self._open[node].held_bytes)
        return self.refuse(
            largest, AbsenceReason.UNREADABLE, "unfinished answers take too much memory, and its was the largest"
        )

    def _close(self, node: str) -> _Pieces:
        pieces = self._open.pop(node)
        self._held_bytes -= pieces.held_bytes
        return pieces


def _problem(part: Part, pieces: _Pieces) -> str:
    if not 1 <= part.of <= MOST_PARTS or not 0 <= part.part < part.of:
        return f"its answer cannot be used: part {part.part} of {part.of}"
    if pieces.by_part and part.of != pieces.of:
        return f"its answer cannot be used: of {pieces.of} parts, then of {part.of} (do two processes speak in its name?)"
    if pieces.held_bytes + len(part.data) > LARGEST_PACKED_BYTES:
        return f"its answer is larger than {LARGEST_PACKED_BYTES} bytes"
    return ""


def _reason(text: str) -> AbsenceReason:
    """A reason that a newer minor version has added is at least no answer that can be read."""
    try:
        return AbsenceReason(text)
    except ValueError:
        return AbsenceReason.UNREADABLE
