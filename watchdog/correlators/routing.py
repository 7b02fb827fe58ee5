"""What is ill in how MoE layers route, as findings: what lasts, and drops of the past that lasted long enough to do harm.

The illnesses come from `watchdog/routing`; how they are worded is in `routing_words.py`.
"""

from collections.abc import Callable, Iterable

from msgspec.structs import replace

from pardbg.watchdog.correlators.routing_advice import advise
from pardbg.watchdog.correlators.routing_ailment import Ailment
from pardbg.watchdog.correlators.routing_dating import redate
from pardbg.watchdog.correlators.routing_words import claim, lines, why_hot
from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.graph.axes import axis_of
from pardbg.watchdog.graph.groups import Group
from pardbg.watchdog.model.names import ROUTING_KINDS, Confidence, Kind, Scope
from pardbg.watchdog.model.report import Finding, Subject
from pardbg.watchdog.model.routing import RoutingRow, RoutingSeries
from pardbg.watchdog.routing.illness import Illness

LEAST_HARM_STEPS = 20
"""How long drops must have lasted to be told after their end: what was not trained then is lost; a batch or two is little."""
SURE_ROWS = 20
LAG_STEPS = 16
"""Counted steps by which an illness may have begun before it can be told: the window of the detectors."""


def correlate(situation: Situation) -> Iterable[Finding]:
    """One finding an illness and layer, the earliest of a kind first."""
    if not situation.view.routing:
        return
    rows, ailing = rows_of_layers(situation), sorted(find_ailing(situation), key=by_gravity(situation))
    safe = find_safe_step(situation, ailing)
    for illness in ailing:
        alike = sum(other.kind is illness.kind for other in ailing)
        ailment = Ailment.of(illness, rows.get(illness.layer, ()), alike, situation.routing.names, safe)
        yield _describe(situation, ailment)


def find_ailing(situation: Situation) -> list[Illness]:
    """The illnesses that make findings, each since when all rows together say."""
    watch, rows = situation.routing_watch, rows_of_layers(situation)
    found = [*watch.illnesses, *(illness for illness in watch.past if is_harm(illness))]
    return [redate(illness, rows.get(illness.layer, ())) for illness in found]


def rows_of_layers(situation: Situation) -> dict[int, list[RoutingRow]]:
    """The rows of each layer, oldest first."""
    rows: dict[int, list[RoutingRow]] = {}
    for row in situation.routing.rows:
        rows.setdefault(row.layer, []).append(row)
    return rows


def by_gravity(situation: Situation) -> Callable[[Illness], tuple[bool, int, int, int]]:
    """A key to sort by: what began while it was counted before what was there all along, then by kind and age."""
    first = first_steps(situation)

    def key(illness: Illness) -> tuple[bool, int, int, int]:
        is_old = illness.since_step <= first.get(illness.layer, -1)
        return is_old, ROUTING_KINDS.index(illness.kind), illness.since_step, illness.layer

    return key


def first_steps(situation: Situation) -> dict[int, int]:
    """The first step that was counted, by layer. What is ill since then is so all along."""
    return {layer: rows[0].step for layer, rows in rows_of_layers(situation).items()} if situation.view.routing else {}


def find_safe_step(situation: Situation, ailing: Iterable[Illness]) -> int | None:
    """A counted step well before anything fell ill, None where none was. Beginnings are told late, not early."""
    first = first_steps(situation)
    began = [illness.since_step for illness in ailing if illness.since_step > first.get(illness.layer, -1)]
    if not began:
        return None
    steps = sorted({row.step for row in situation.routing.rows if row.step < min(began)})
    return steps[-LAG_STEPS] if len(steps) > LAG_STEPS else None


def is_harm(illness: Illness) -> bool:
    """Whether an illness that has ended is told all the same."""
    ended = illness.until_step
    return illness.kind is Kind.DROP_SPIKE and ended is not None and ended - illness.since_step >= LEAST_HARM_STEPS


def _describe(situation: Situation, ailment: Ailment) -> Finding:
    illness = ailment.illness
    return Finding(
        kind=illness.kind,
        confidence=Confidence.SUPPORTED if len(ailment.now) >= SURE_ROWS else Confidence.SUGGESTED,
        culprits=tuple(_hot_ranks(situation, ailment)) if illness.kind is Kind.EP_IMBALANCE else (),
        layer=illness.layer,
        since_step=illness.since_step,
        claim=claim(ailment),
        evidence=tuple(lines(ailment, situation.view)),
        advice=advise(ailment),
    )


def _hot_ranks(situation: Situation, ailment: Ailment) -> Iterable[Subject]:
    """The hot EP ranks, by their global ranks where the EP groups are known."""
    groups = [group for group in situation.groups.groups if axis_of(group) == "ep" and _is_plain(group, ailment.ep_size)]
    for ep_rank in ailment.illness.ep_ranks:
        ranks = _members(situation, groups, ep_rank, ailment.ep_size)
        why = why_hot(ailment, ep_rank)
        if len(ranks) == 1:
            subject = situation.subject(ranks[0], why)
            yield replace(subject, coords={**subject.coords, "ep": ep_rank})
        else:
            yield Subject(scope=Scope.GROUP, ranks=ranks, coords={"ep": ep_rank}, why=why)


def _is_plain(group: Group, size: int | None) -> bool:
    return len(group.ranks) == size and not group.is_inferred and not group.claims


def _members(situation: Situation, groups: list[Group], ep_rank: int, ep_size: int | None) -> tuple[int, ...]:
    """The global ranks that are this EP rank, one in each copy; none where that is not known."""
    if groups:
        return tuple(sorted(group.ranks[ep_rank] for group in groups))
    is_everybody = ep_size is not None and _is_whole_world(situation, ep_size)
    return (ep_rank,) if is_everybody else ()  # one group of all ranks, in their order


def _is_whole_world(situation: Situation, size: int) -> bool:
    """Whether the job has so many ranks for sure: the number in a file's name need not be a rank."""
    counted = {item.rank for item in situation.view.evidence if isinstance(item.observation, RoutingSeries)}
    return situation.view.job.world_size == size or counted == {*range(size)}
