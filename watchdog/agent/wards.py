"""All jobs under care: who came, who went, and one look at everybody.

A census is taken when something that seems to run Python has come, when a rank has ended, and once a minute; the more often one
finds nothing new, the rarer they become. Cost: see `census.py`, `newcomers.py`, `patient.py`
and `ward_routing.py`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from pardbg.collectors.jobs.find import find_all_worlds
from pardbg.collectors.vitals.newcomers import Newcomers
from pardbg.watchdog.agent.quiet import Limits
from pardbg.watchdog.agent.ward import Ward, key_of
from pardbg.watchdog.agent.watch import Patience, Watch
from pardbg.watchdog.model.evidence import Absence, Evidence
from pardbg.watchdog.model.world import World

_SOONEST_S = 3.0
_IN_VAIN_FACTOR = 2.0
_LATEST_S = 60.0


@dataclass
class Wards:
    """Close them.

    Attributes:
        node: this machine's name among the nodes of a job, empty for its own.
        limits: see `Watch`, as ``patience``.
        find: takes a census.
        worlds: what the last census has found; ``unseen``: what it could not see, in words.
        leave: called with each job that has ended here.
    """

    node: str
    limits: Limits
    patience: Patience
    leave: Callable[[Ward], None]
    find: Callable[[str], tuple[tuple[World, ...], tuple[Evidence, ...]]] = find_all_worlds
    worlds: tuple[World, ...] = ()
    unseen: tuple[str, ...] = ()
    _wards: list[Ward] = field(default_factory=list)
    _newcomers: Newcomers = field(default_factory=Newcomers)
    _is_wanted: bool = True
    _taken_at_s: float = float("-inf")
    _between_s: float = _SOONEST_S

    def __iter__(self) -> Iterator[Ward]:
        """The oldest first."""
        return iter(self._wards)

    def look(self, now_s: float) -> None:
        """Looks at every rank once, and takes a census if there is reason to."""
        ended_count = sum(not ward.look(now_s) for ward in self._wards)
        if ended_count:
            self._is_wanted, self._between_s = True, _SOONEST_S
        self._is_wanted |= self._newcomers.is_any_python()
        since_s = now_s - self._taken_at_s
        if (self._is_wanted and since_s >= self._between_s) or since_s >= _LATEST_S:
            self._take_census(now_s)

    def close(self) -> None:
        """Leaves all ranks."""
        for ward in self._wards:
            ward.close()

    def _take_census(self, now_s: float) -> None:
        found, evidence = self.find(self.node)
        self.unseen = tuple(item.observation.detail for item in evidence if isinstance(item.observation, Absence))
        is_news = _identities(found) != _identities(self.worlds)
        self._between_s = _SOONEST_S if is_news else min(self._between_s * _IN_VAIN_FACTOR, _LATEST_S)
        self._is_wanted, self._taken_at_s, self.worlds = False, now_s, found
        kept = {id(ward): world for world in found if (ward := self._known(world)) is not None}
        elsewhere = _identities(found)
        for ward in list(self._wards):
            if id(ward) in kept:
                ward.meet(kept[id(ward)])
            elif ward.identities <= elsewhere:  # else it lives, and the census has not seen it
                self._wards.remove(ward)
                self.leave(ward)
                ward.close()
        old = {id(world) for world in kept.values()}
        for world in found:
            if id(world) not in old:
                self._wards.append(self._begin(world, now_s))

    def _known(self, world: World) -> Ward | None:
        """The ward of this launch: the same world, and a process in common."""
        own = _identities((world,))
        for ward in self._wards:
            if key_of(ward.world) == key_of(world) and own & _identities((ward.world,)):
                return ward
        return None

    def _begin(self, world: World, now_s: float) -> Ward:
        key = key_of(world)
        if any(ward.key == key for ward in self._wards):  # loopback addresses in two containers
            key += f"|{world.ranks[0].started_ticks}"
        ward = Ward(world, Watch(began_at_s=now_s, limits=self.limits, patience=self.patience), key)
        ward.look(now_s)
        return ward


def _identities(worlds: tuple[World, ...]) -> frozenset[tuple[int, int]]:
    return frozenset((rank.pid, rank.started_ticks) for world in worlds for rank in world.ranks)
