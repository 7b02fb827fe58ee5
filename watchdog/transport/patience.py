"""How long a request waits for the nodes that have not answered when most have. Pure.

A node at work says that it hears when it is asked (`lines.py`, id 0), and is waited for as long as the request has time: the
slow one may well be the culprit's. One that says nothing is stuck, cut off, or has not come up, and all others wait for it.
"""

from bisect import insort
from collections.abc import Collection

LEAST_S = 3.0
"""Of silence: a loaded node takes a second or two to say that it hears."""
FIRST_S = 8.0
"""Of a node that has not come up yet: on a busy file system Python alone takes seconds."""
MEDIANS = 4
"""Of the times that others took, if that is longer."""
PING_S = 1.0
"""Between two questions whether a node hears."""


class Patience:
    """Of one request. Times are of the monotonic clock."""

    def __init__(self, nodes: Collection[str], asked_s: float, *, is_short: bool) -> None:
        """Counts silence from when half of ``nodes`` have answered; ``is_short``: from now on."""
        self._count = len(nodes)
        self._took_s: list[float] = []
        self._took_with_start_s: list[float] = []
        self._signs_s: dict[str, float] = {}
        self._pings_s: dict[str, float] = {}
        self._since_s = asked_s if is_short else None

    @property
    def is_running(self) -> bool:
        """Whether most have answered, so that silence counts."""
        return self._since_s is not None

    def note_sign(self, node: str, now_s: float) -> None:
        """A node has said something."""
        self._signs_s[node] = now_s

    def note_answer(self, started_s: float, up_s: float, now_s: float) -> None:
        """A node has answered that was started (or asked) at ``started_s``, and up (and asked) at ``up_s``."""
        insort(self._took_s, now_s - up_s)
        insort(self._took_with_start_s, now_s - started_s)
        self._settle(now_s)

    def note_loss(self, now_s: float) -> None:
        """A node will not answer."""
        self._count -= 1
        self._settle(now_s)

    def silence_s(self, node: str, began_s: float, now_s: float) -> float:
        """For how long it has said nothing, of the time that counts; ``began_s``: when it was started."""
        return now_s - max(self._since_s or now_s, began_s, self._signs_s.get(node, 0.0))

    def is_over(self, silence_s: float, *, is_up: bool) -> bool:
        """Whether a silence is too long; ``is_up``: the node has spoken before."""
        times_s = self._took_s if is_up else self._took_with_start_s
        median_s = times_s[len(times_s) // 2] if times_s else 0.0
        return silence_s > max(LEAST_S if is_up else FIRST_S, MEDIANS * median_s)

    def is_to_be_asked(self, node: str, silence_s: float, now_s: float) -> bool:
        """Whether to ask it now if it hears; that is then noted."""
        is_due = silence_s >= PING_S and now_s - self._pings_s.get(node, 0.0) >= PING_S
        if is_due:
            self._pings_s[node] = now_s
        return is_due

    def _settle(self, now_s: float) -> None:
        if self._since_s is None and self._took_s and 2 * len(self._took_s) >= self._count:
            self._since_s = now_s
