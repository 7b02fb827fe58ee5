"""What answers of NCCL's RAS say of ranks: who has launched fewer operations than the others, and who is held for dead. Pure.

The outliers are computed here from the counts, since RAS calls an outlier what is merely rare. Members of a communicator are
ranks only where it has all ranks of the job. A count that is 0 proves nothing: some versions never count in communicators of
one host; and counts agree on nothing unless every member's is there.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from pardbg.watchdog.model.evidence import Evidence
from pardbg.watchdog.model.ras import RasCommunicator, RasCount, RasPlace, RasSeen

MIN_MEMBERS = 3  # of two, either may be the one that is wrong
MIN_POLLS = 2
MOST_NAMED = 8


@dataclass(frozen=True)
class Lag:
    """Ranks that have launched fewer operations of a kind than most; ``launched`` by each of them, ``most`` by the others."""

    op: str
    ranks: tuple[int, ...]
    launched: int
    most: int

    @property
    def words(self) -> str:
        """What is told of each of them."""
        return f"it has launched {self.launched} {self.op} operations of the job's communicator, most others {self.most}"


@dataclass(frozen=True)
class RasPolls:
    """The answers, oldest first, each with its evidence."""

    answers: tuple[tuple[Evidence, RasSeen], ...]
    world_size: int | None

    @classmethod
    def of(cls, evidence: Iterable[Evidence], world_size: int | None) -> "RasPolls":
        """Finds the answers; of one sample the last."""
        found = ((item, item.observation) for item in evidence if isinstance(item.observation, RasSeen))
        by_sample = {seen.sample: (item, seen) for item, seen in found}
        return cls(tuple(by_sample[sample] for sample in sorted(by_sample)), world_size)

    @property
    def origin(self) -> Evidence | None:
        """The newest answer's evidence."""
        return self.answers[-1][0] if self.answers else None

    @cached_property
    def is_frozen(self) -> bool:
        """Whether two answers with all members have the same counts; one alone cannot tell."""
        if len(self.answers) < MIN_POLLS:
            return False
        ends = (self.answers[0][1], self.answers[-1][1])
        first, last = ({item.hash: item.counts for item in self._of_all(seen)} for seen in ends)
        return bool(last) and first == last

    @property
    def has_moved(self) -> bool:
        """Whether counts differ between two answers."""
        return len(self.answers) >= MIN_POLLS and not self.is_frozen

    @cached_property
    def lags(self) -> tuple[Lag, ...]:
        """By the newest answer, a clear minority behind a majority; nothing if anybody is ahead of that."""
        if not self.answers:
            return ()
        return tuple(lag for item in self._of_all(self.answers[-1][1]) for lag in _find_lags(item))

    @cached_property
    def differences(self) -> tuple[str, ...]:
        """Which counts differ within a communicator by the newest answer, whoever lags: not enough to suspect anybody."""
        if not self.answers:
            return ()
        by_op = (item for communicator in self.answers[-1][1].communicators for item in _by_op(communicator).items())
        return tuple(f"{op} ({' and '.join(map(_words_of, counts))})" for op, counts in by_op if len(counts) > 1)

    @cached_property
    def dead(self) -> dict[int, str]:
        """The ranks that the newest answer holds for dead, with where their processes were."""
        if not self.answers:
            return {}
        whole = (item for item in self.answers[-1][1].communicators if self._is_of_world(item))
        return {place.member: _process(place) for item in whole for place in item.dead}

    @cached_property
    def suspects(self) -> dict[int, str]:
        """Whom the newest answer tells something amiss of, and what: not enough to accuse them."""
        if not self.answers:
            return {}
        seen = self.answers[-1][1]
        behind = {} if self.has_moved else {rank: lag.words for lag in self.lags for rank in lag.ranks}
        whole = [item for item in seen.communicators if self._is_of_world(item)]
        failed = {place.member: "it reports an error of NCCL's" for item in whole for place in item.failed}
        missing = {
            place.member: f"RAS has no data of {_process(place)}: it did not answer" for item in whole for place in item.missing
        }
        return behind | failed | missing | {rank: f"RAS holds {process} for dead" for rank, process in self.dead.items()}

    def _of_all(self, seen: RasSeen) -> list[RasCommunicator]:
        """Communicators of all ranks of which every member's counts are there."""
        return [item for item in seen.communicators if self._is_of_world(item) and not item.missing and _is_complete(item)]

    def _is_of_world(self, item: RasCommunicator) -> bool:
        return item.size is not None and item.size == self.world_size


def largest_answered(evidence: Iterable[Evidence]) -> int:
    """The size of the largest communicator that RAS knows; 0 without one."""
    seen = (item.observation for item in evidence if isinstance(item.observation, RasSeen))
    return max((item.size or 0 for answer in seen for item in answer.communicators), default=0)


def _process(place: RasPlace) -> str:
    return f"process {place.pid} on node {place.host}" if place.host else "its process"


def _words_of(count: RasCount) -> str:
    """``2 members up to 641: 12, 13``; of many members only their number."""
    named = f": {', '.join(map(str, count.members[:8]))}" if 0 < len(count.members) <= MOST_NAMED else ""
    return f"{count.number} member{'s' * (count.number != 1)} up to {count.launched}{named}"


def _by_op(item: RasCommunicator) -> dict[str, list[RasCount]]:
    found: dict[str, list[RasCount]] = {}
    for count in item.counts:
        found.setdefault(count.op, []).append(count)
    return found


def _is_complete(item: RasCommunicator) -> bool:
    return bool(item.counts) and all(sum(count.number for count in counts) == item.size for counts in _by_op(item).values())


def _find_lags(item: RasCommunicator) -> Iterable[Lag]:
    size = item.size or 0
    for op, counts in _by_op(item).items():
        most = max(counts, key=lambda count: count.launched)
        behind = [count for count in counts if count is not most]
        is_clear = size >= MIN_MEMBERS and 2 * most.number > size and bool(behind)
        is_known = all(len(count.members) == count.number and count.launched > 0 for count in behind)
        if is_clear and is_known:
            for count in behind:
                yield Lag(op, tuple(sorted(count.members)), count.launched, most.launched)
