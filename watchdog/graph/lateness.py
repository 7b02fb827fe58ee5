"""Who comes late again and again although the job moves, and what that costs."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pardbg.watchdog.graph.groups import Group
from pardbg.watchdog.graph.rounds import Round, Rounds

WEIGHTY = 0.2
"""A round counts whose cost is at least this part of the mean cost."""
FEWEST_ROUNDS = 8
LATE_SHARE = 0.05
"""Of the time: less is not worth a word."""
ALWAYS = 0.8
"""Of the rounds that count: so often is a straggler among the late."""
ROTATING_SHARE = 0.10
LEAST_ROTATING_NS = 50_000_000
"""In the mean of the rounds that count: a busy machine keeps one process after another waiting for less than that."""
OFTEN = 0.5
_THIRDS = 3


@dataclass(frozen=True)
class Late:
    """Ranks of one group that the others wait for, round after round.

    ``lost_ns`` of ``window_ns`` were lost; ``count`` rounds show it. Without ``ranks`` it is always somebody else.
    """

    group: Group
    ranks: tuple[int, ...]
    lost_ns: int
    window_ns: int
    count: int
    first_seq: int
    last_seq: int

    @property
    def share(self) -> float:
        """Part of the time that is lost, 0-1."""
        return min(self.lost_ns / self.window_ns, 0.99)

    @property
    def usual_ns(self) -> float:
        """How late they are, in the mean of the rounds that show it."""
        return self.lost_ns / self.count


def find_late(rounds: Rounds, fewest: int = FEWEST_ROUNDS) -> Late | None:
    """Who makes the others of a group wait in at least so many rounds; None if nobody does for long, or not always the same."""
    costs = [(one, one.excess_ns) for one in rounds.rounds]
    total = sum(max(excess.values()) for _, excess in costs)
    if total < LATE_SHARE * rounds.window_ns:
        return None
    weighty = [(one, excess) for one, excess in costs if max(excess.values()) * len(costs) >= WEIGHTY * total]
    if len(weighty) < fewest or not _is_spread(rounds, [one for one, _ in weighty]):
        return None
    counts = Counter(rank for _, excess in weighty for rank in _late_ones(excess))
    always = tuple(sorted(rank for rank, count in counts.items() if count >= ALWAYS * len(weighty)))
    if always and len(always) <= max(1, len(rounds.group.ranks) // 3):
        lost = sum(_lost_by(one, always) for one, _ in costs)
        if lost >= LATE_SHARE * rounds.window_ns:
            return _late(rounds, always, lost, [one for one, _ in weighty])
    return None if always else _find_rotating(rounds)


def _late_ones(excess: Mapping[int, int]) -> Iterator[int]:
    half = max(excess.values()) / 2
    return (rank for rank, late in excess.items() if late > half)


def _lost_by(one: Round, ranks: Sequence[int]) -> int:
    """How much sooner the round would have begun without these ranks."""
    others = max((late for rank, late in one.late_ns.items() if rank not in ranks), default=0)
    return max(0, max(one.late_ns[rank] for rank in ranks) - others)


def _is_spread(rounds: Rounds, weighty: Sequence[Round]) -> bool:
    """Whether all thirds of what was recorded have rounds that count: a pause in the middle is no habit."""
    first, last = rounds.rounds[0].seq, rounds.rounds[-1].seq
    return len({min((one.seq - first) * _THIRDS // max(last - first, 1), _THIRDS - 1) for one in weighty}) == _THIRDS


def _find_rotating(rounds: Rounds) -> Late | None:
    """Whether single ranks are late in turn, far behind the last but one: shaking alone makes no such gaps."""
    total = sum(one.lead_ns for one in rounds.rounds)
    weighty = [one for one in rounds.rounds if one.lead_ns * len(rounds.rounds) >= WEIGHTY * total]
    if total < ROTATING_SHARE * rounds.window_ns or len(weighty) < FEWEST_ROUNDS or not _is_spread(rounds, weighty):
        return None
    if sum(one.lead_ns for one in weighty) < LEAST_ROTATING_NS * len(weighty):
        return None
    most = Counter(one.last for one in weighty).most_common(1)[0][1]
    is_shared = most <= OFTEN * len(weighty) and len({one.last for one in weighty}) >= _THIRDS
    return _late(rounds, (), total, weighty) if is_shared else None


def _late(rounds: Rounds, ranks: tuple[int, ...], lost_ns: int, weighty: Sequence[Round]) -> Late:
    return Late(rounds.group, ranks, lost_ns, rounds.window_ns, len(weighty), weighty[0].seq, weighty[-1].seq)
