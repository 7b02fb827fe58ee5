"""In which order the operations of traced steps depend on each other, so that they can be played with other times.

A rank computes in order. What it computes waits for what it receives, and is sent when it is done. A transfer or a collective
begins when its last member has come, and takes its own time from there. The end of a step comes in the order in which it was
recorded, after all else. Steps begin together, and depend on nothing before them.
"""

from collections import deque
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pardbg.watchdog.model.step_trace import StepTrace, TracedOperation

FORWARD, BACKWARD = "forward", "backward"
COMPUTE = frozenset({"forward-compute", "backward-compute"})
SENDS = {"forward-send": 1, "backward-send": -1}
"""By how many stages the peer is further on."""
RECEIPTS = {"forward-recv": 0, "backward-recv": 0}
GATHER = "params-all-gather"
AMONG_REPLICAS = frozenset({GATHER, "grads-reduce-scatter", "separate-grads-all-reduce"})
AMONG_STAGES = frozenset({"embedding-grads-all-reduce"})
AMONG_ALL = frozenset({"optimizer-clip-main-grad"})
COMMUNICATION = frozenset({*SENDS, *RECEIPTS, *AMONG_REPLICAS, *AMONG_STAGES, *AMONG_ALL, "layernorm-grads-all-reduce"})


@dataclass(frozen=True)
class Gathering:
    """Operations that begin together (mostly one), and those that must have ended before; as indices."""

    members: tuple[int, ...]
    needs: tuple[int, ...]


def order_steps(trace: StepTrace) -> tuple[Gathering, ...]:
    """All gatherings, each after those it needs; empty if there is no such order. Linear in the operations, but for sorting."""
    needs = _needs(trace)
    together: dict[Hashable, list[int]] = {}
    for index, operation in enumerate(trace.operations):
        together.setdefault(_key(trace.kinds[operation.kind], index, operation), []).append(index)
    gatherings = [Gathering(tuple(found), tuple({need for one in found for need in needs[one]})) for found in together.values()]
    return _sorted(gatherings, len(trace.operations))


def _key(kind: str, index: int, operation: TracedOperation) -> Hashable:
    """Equal for operations that meet."""
    step, number = operation.step, operation.number
    if kind in SENDS or kind in RECEIPTS:
        direction = kind.partition("-")[0]
        return direction, step, operation.replica, operation.stage + SENDS.get(kind, 0), number
    if kind in AMONG_REPLICAS:
        return kind, step, operation.stage, number
    if kind in AMONG_STAGES:
        return kind, step, operation.replica, number
    return (kind, step, number) if kind in AMONG_ALL else index


def _needs(trace: StepTrace) -> list[list[int]]:
    needs: list[list[int]] = [[] for _ in trace.operations]
    lanes: dict[tuple[int, int], dict[str, list[int]]] = {}
    for index, operation in enumerate(trace.operations):
        lane = lanes.setdefault((operation.rank, operation.step), {})
        lane.setdefault(trace.kinds[operation.kind], []).append(index)
    for lane in lanes.values():
        for after, before in _needs_of_lane(trace.operations, lane):
            needs[after].append(before)
    return needs


def _needs_of_lane(operations: Sequence[TracedOperation], lane: Mapping[str, list[int]]) -> Iterator[tuple[int, int]]:
    """What must end before what in one step of one rank: pairs of the later and the earlier."""

    def in_order(*kinds: str) -> list[int]:
        found = (index for kind in kinds for index in lane.get(kind, ()))
        return sorted(found, key=lambda index: (operations[index].start_s, operations[index].duration_s))

    computed = in_order(*COMPUTE)
    gathered = in_order(GATHER)
    ends = in_order(*(kind for kind in lane if kind not in {*COMPUTE, *SENDS, *RECEIPTS, GATHER}))
    yield from _chain(computed)
    yield from _chain(gathered)
    for direction in (FORWARD, BACKWARD):
        sent, received = in_order(f"{direction}-send"), in_order(f"{direction}-recv")
        yield from (*_chain(sent), *_chain(received))
        yield from _transfers(operations, in_order(f"{direction}-compute"), sent, received)
    for gather in gathered:
        first = next((index for index in computed if operations[index].chunk == operations[gather].chunk), None)
        yield from ((first, gather),) if first is not None else ()
    yield from _at_the_end(operations, computed, ends)


def _chain(line: Sequence[int]) -> Iterator[tuple[int, int]]:
    return zip(line[1:], line, strict=False)


def _transfers(
    operations: Sequence[TracedOperation], computed: Sequence[int], sent: Sequence[int], received: Sequence[int]
) -> Iterator[tuple[int, int]]:
    by_number = {operations[index].number: index for index in computed}
    for index in sent:
        if (source := by_number.get(operations[index].number)) is not None:
            yield index, source
    for index in received:
        if (target := by_number.get(operations[index].number)) is not None:
            yield target, index
        if (before := by_number.get(operations[index].number - 1)) is not None:
            yield index, before


def _at_the_end(
    operations: Sequence[TracedOperation], computed: Sequence[int], ends: Sequence[int]
) -> Iterator[tuple[int, int]]:
    """What comes after the last computation, one after the other; reductions that began before it ran beside it."""
    if not computed:
        yield from _chain(ends)
        return
    last = max(computed, key=lambda index: operations[index].end_s)
    early = [index for index in ends if operations[index].start_s < operations[last].start_s]
    late = [index for index in ends if operations[index].start_s >= operations[last].start_s]
    yield from _chain(early)
    yield from _chain(late)
    for index in early:
        done = [one for one in computed if operations[one].end_s <= operations[index].start_s]
        yield from ((index, done[-1]),) if done else ()
    if late:
        yield late[0], last
        yield from ((late[0], early[-1]),) if early else ()


def _sorted(gatherings: Sequence[Gathering], count: int) -> tuple[Gathering, ...]:
    gathering_of = [0] * count
    for place, gathering in enumerate(gatherings):
        for member in gathering.members:
            gathering_of[member] = place
    waited_for: list[list[int]] = [[] for _ in gatherings]
    missing = [0] * len(gatherings)
    for place, gathering in enumerate(gatherings):
        for before in {gathering_of[need] for need in gathering.needs}:
            waited_for[before].append(place)
            missing[place] += 1
    ready = deque(place for place, count in enumerate(missing) if not count)
    order: list[Gathering] = []
    while ready:
        place = ready.popleft()
        order.append(gatherings[place])
        for after in waited_for[place]:
            missing[after] -= 1
            if not missing[after]:
                ready.append(after)
    return tuple(order) if len(order) == len(gatherings) else ()
