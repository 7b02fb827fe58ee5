"""What is known of each node over several requests, and whether the next one waits for it.

A node that misses a request's time is asked again, since it may merely be slow: but the next request does not wait for it once
all others have answered, or every request of a scan would last as long as its slowest node. As soon as it says anything, it is
waited for again. A node whose connection has ended, or that speaks another version, stays lost: to connect once more would cost
the time of all others, and what a `collect` knew of the earlier requests is gone with it.
"""

from collections.abc import Iterable

from pardbg.watchdog.model.names import AbsenceReason


class Peers:
    """All nodes of a conversation."""

    def __init__(self, nodes: Iterable[str]) -> None:
        self.nodes = tuple(nodes)
        self._known = frozenset(self.nodes)
        self._overdue: set[str] = set()
        self._losses: dict[str, tuple[AbsenceReason, str]] = {}

    def __contains__(self, node: str) -> bool:
        return node in self._known

    def lose(self, node: str, reason: AbsenceReason, detail: str) -> None:
        """Marks a node as lost for good; the first reason stays."""
        self._losses.setdefault(node, (reason, detail))

    def loss(self, node: str) -> tuple[AbsenceReason, str] | None:
        """Why a node is lost for good, if it is."""
        return self._losses.get(node)

    def is_overdue(self, node: str) -> bool:
        """Whether it has missed the time of a request, and said nothing since."""
        return node in self._overdue

    def set_overdue(self, node: str, *, is_overdue: bool) -> None:
        """Notes that a node has missed a request's time, or has said something."""
        if is_overdue:
            self._overdue.add(node)
        else:
            self._overdue.discard(node)

    def worth_waiting_for(self, nodes: Iterable[str]) -> set[str]:
        """Those of ``nodes`` that a request waits for: all that are not overdue, or all if every one is.

        Raises:
            KeyError: if a node is not known.
        """
        asked = set(nodes)
        if unknown := asked - self._known:
            raise KeyError(f"not a node of this conversation: {', '.join(sorted(unknown)[:3])}")
        return asked - self._overdue or asked
