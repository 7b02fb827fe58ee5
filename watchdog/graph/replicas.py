"""Replicas of one module, side by side: at which of their steps they were equal, and which of them were fed alike.

Only moments at which all that were seen had finished as many steps and passes are compared. Whoever counts otherwise - a rank
that runs something of its own in between - is at another place of the program, and cannot be compared.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pardbg.watchdog.graph.divergence import CLEAR_RATIO, MIN_MAJORITY
from pardbg.watchdog.model.replica import ReplicaMoment, ReplicaSeen

LEAST_UNEQUAL = 2
"""Moments in a row at which weights differ before it is told."""
LEAST_TRAINED = 2
"""Moments, after different numbers of steps, at which weights that had been trained were equal: they can be, then."""
LIKELY_CHANCE = 1e-5
"""Chance that batches of so few kinds are alike so often by themselves."""

Classes = tuple[tuple[int, ...], ...]
"""Ranks with equal fingerprints, the largest class first."""


@dataclass(frozen=True)
class Moment:
    """What all replicas were after one step. ``data`` is empty where that of one of them was not understood.

    ``is_first``: at the begin of the first pass that was ever synchronised.
    ``fingerprint`` is that of the weights of the largest class, ``data_of`` that of each rank's data.
    """

    step: int
    is_first: bool
    weights: Classes
    data: Classes
    fingerprint: int
    data_of: Mapping[int, int]


@dataclass(frozen=True)
class Parting:
    """Replicas that are not equal any more.

    Attributes:
        sides: as they are now, the largest first.
        minority: the ranks that a clear majority stands against, in each of the last moments the same.
        equal_step: the last moment at which they were equal, None if there was none.
        since_step: the first of the moments since which they never were.
        is_from_start: they were unequal before they had trained together.
        moment_count: moments since then.
    """

    sides: Classes
    minority: tuple[int, ...]
    equal_step: int | None
    since_step: int
    is_from_start: bool
    moment_count: int


@dataclass(frozen=True)
class Alike:
    """Ranks that were fed the same, from one step to the last one that was looked at, in so many moments."""

    ranks: tuple[int, ...]
    since_step: int
    last_step: int
    moment_count: int
    is_all_along: bool


@dataclass(frozen=True)
class Replicas:
    """The replicas of one module, by rank, and the moments at which they can be compared, oldest first."""

    seen: Mapping[int, ReplicaSeen]
    moments: tuple[Moment, ...]

    @property
    def ranks(self) -> tuple[int, ...]:
        """Whose replicas were seen."""
        return tuple(sorted(self.seen))

    @property
    def any_seen(self) -> ReplicaSeen:
        """What is the same for all."""
        return self.seen[self.ranks[0]]

    @property
    def unseen_count(self) -> int:
        """How many ranks hold a replica that was not seen, or cannot be compared."""
        return self.any_seen.size - len(self.seen)

    def parting(self) -> Parting | None:
        """How they are unequal now. None if they are equal, or were unequal for a moment only.

        Nor does it count that they never were equal after a step, if they were before the first: where machines compute a
        little otherwise - other processors, other numbers of threads - that is so from then on, and nothing is wrong.
        """
        tail = _last_run(self.moments, lambda moment: len(moment.weights) > 1)
        if len(tail) < LEAST_UNEQUAL:
            return None
        before = self.moments[: len(self.moments) - len(tail)]
        if not tail[0].is_first and not _have_trained(before):
            return None
        minorities = {self._minority(moment.weights) for moment in tail[-LEAST_UNEQUAL:]}
        return Parting(
            sides=tail[-1].weights,
            minority=minorities.pop() if len(minorities) == 1 else (),
            equal_step=before[-1].step if before else None,
            since_step=tail[0].step,
            is_from_start=tail[0].is_first,
            moment_count=len(tail),
        )

    def fed_alike(self) -> Iterator[Alike]:
        """Those that read the same data, as long as nothing says otherwise."""
        known = [moment for moment in self.moments if moment.data]
        for ranks in known[-1].data if known else ():
            alike = _find_alike(ranks, known) if len(ranks) > 1 else None
            if alike is not None:
                yield alike

    def unequal_parts(self) -> tuple[int, ...] | None:
        """The places of the parameters that differ in the newest moment that all know; None if there is no such."""
        by_rank = [{parts.step: parts.sums for parts in seen.newest} for seen in self.seen.values()]
        steps = set.intersection(*(set(known) for known in by_rank))
        if not steps:
            return None
        rows = [known[max(steps)] for known in by_rank]
        return tuple(place for place, sums in enumerate(zip(*rows, strict=False)) if len(set(sums)) > 1)

    def _minority(self, classes: Classes) -> tuple[int, ...]:
        """As in `divergence.Sides`: also if everybody who was not seen stood against the majority."""
        largest, against = len(classes[0]), sum(len(ranks) for ranks in classes[1:])
        if largest + against < MIN_MAJORITY or largest < CLEAR_RATIO * (against + self.unseen_count):
            return ()
        return tuple(sorted(rank for ranks in classes[1:] for rank in ranks))


def find_replicas(seen: Mapping[int, ReplicaSeen]) -> tuple[Replicas, ...]:
    """Those of each module of which two or more were seen. ``seen``: what each rank holds."""
    groups: dict[tuple[int, ...], dict[int, ReplicaSeen]] = {}
    for rank, replica in sorted(seen.items()):
        if not 0 < replica.parts <= replica.tensors or not 0 < replica.seen <= replica.whole:  # a file may say anything
            continue
        key = replica.group, replica.size, replica.ordinal, replica.tensors, replica.parts, replica.seen, replica.whole
        groups.setdefault(key, {})[rank] = replica
    found = (group for group in groups.values() if 1 < len(group) <= next(iter(group.values())).size)
    return tuple(Replicas(group, tuple(_compare(group))) for group in found)


def _compare(group: Mapping[int, ReplicaSeen]) -> Iterator[Moment]:
    by_rank = {rank: {(moment.step, moment.forward): moment for moment in seen.moments} for rank, seen in group.items()}
    common = set.intersection(*(set(moments) for moments in by_rank.values()))
    for key in sorted(common):
        at: dict[int, ReplicaMoment] = {rank: moments[key] for rank, moments in by_rank.items()}
        data = {rank: moment.data for rank, moment in at.items()}
        weights = {rank: moment.weights for rank, moment in at.items()}
        classes = _classes(weights)
        yield Moment(key[0], key[1] == 1, classes, _classes(data) if all(data.values()) else (), weights[classes[0][0]], data)


def _have_trained(moments: Iterable[Moment]) -> bool:
    """Whether weights have been equal while they changed: then what computes them does so alike everywhere."""
    equal = {moment.fingerprint for moment in moments if len(moment.weights) == 1 and not moment.is_first}
    return len(equal) >= LEAST_TRAINED


def _classes(values: Mapping[int, int]) -> Classes:
    ranks: dict[int, list[int]] = {}
    for rank, value in values.items():
        ranks.setdefault(value, []).append(rank)
    return tuple(sorted(map(tuple, ranks.values()), key=lambda found: (-len(found), found)))


def _find_alike(ranks: tuple[int, ...], known: Sequence[Moment]) -> Alike | None:
    """Whether they have been fed the same for so long, and so many kinds of it, that it is no chance.

    What never changes is of one kind.
    """
    run = _last_run(known, lambda moment: len({moment.data_of[rank] for rank in ranks}) == 1)
    kinds = len({moment.data_of[ranks[0]] for moment in run})
    if kinds ** -len(run) > LIKELY_CHANCE:
        return None
    return Alike(ranks, run[0].step, run[-1].step, len(run), len(run) == len(known))


def _last_run(moments: Sequence[Moment], is_so: Callable[[Moment], bool]) -> Sequence[Moment]:
    """The last moments, as far back as it is so without a break."""
    count = next((back for back, moment in enumerate(reversed(moments)) if not is_so(moment)), len(moments))
    return moments[len(moments) - count :]
