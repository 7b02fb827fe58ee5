"""The wait-for graph: ranks wait in meetings, meetings wait for ranks. Where it ends is where the trouble is.

A sink is a set of nodes that nothing leads out of: a rank that waits for nobody (a root), a meeting where all are present, or
a closed cycle.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from pardbg.watchdog.graph.keys import MeetingKey
from pardbg.watchdog.graph.meetings import Meeting, Room
from pardbg.watchdog.graph.standing import Stance

Node = int | MeetingKey


@dataclass(frozen=True)
class WaitGraph:
    """``meetings`` holds every operation somebody waits in; ``edges`` leads from waiting to waited-for."""

    room: Room
    meetings: dict[MeetingKey, Meeting]
    edges: dict[Node, tuple[Node, ...]]

    @cached_property
    def sinks(self) -> tuple[frozenset[Node], ...]:
        """Where all waiting ends, in a fixed order."""
        found = [component for component in _components(self.edges) if self._is_closed(component)]
        return tuple(sorted(found, key=lambda component: min(map(_order, component))))

    @property
    def roots(self) -> tuple[int, ...]:
        """The ranks that others wait for and that wait for nobody, although they could go on."""
        ranks = (next(iter(sink)) for sink in self.sinks if len(sink) == 1)
        return tuple(rank for rank in ranks if isinstance(rank, int) and self.room.standings[rank].can_be_root)

    @property
    def cycles(self) -> tuple[frozenset[Node], ...]:
        """The closed cycles."""
        return tuple(sink for sink in self.sinks if len(sink) > 1)

    @property
    def dead_ends(self) -> tuple[Meeting, ...]:
        """The meetings that wait for nobody who could be named: all are present, or the others were not seen."""
        keys = (next(iter(sink)) for sink in self.sinks if len(sink) == 1)
        return tuple(self.meetings[key] for key in keys if isinstance(key, MeetingKey))

    def missed_by(self, rank: int) -> tuple[Meeting, ...]:
        """The meetings where this rank is absent."""
        return tuple(meeting for meeting in self.meetings.values() if rank in meeting.absent)

    def victims(self, nodes: Iterable[Node]) -> tuple[int, ...]:
        """The ranks that wait, directly or not, for any of these nodes; not the nodes themselves."""
        targets = set(nodes)
        seen, queue = set(targets), list(targets)
        while queue:
            for node in self._reversed.get(queue.pop(), ()):
                if node not in seen:
                    seen.add(node)
                    queue.append(node)
        return tuple(sorted(node for node in seen - targets if isinstance(node, int)))

    @cached_property
    def _reversed(self) -> dict[Node, list[Node]]:
        reverse: dict[Node, list[Node]] = {}
        for node, targets in self.edges.items():
            for target in targets:
                reverse.setdefault(target, []).append(node)
        return reverse

    def _is_closed(self, component: frozenset[Node]) -> bool:
        return all(target in component for node in component for target in self.edges.get(node, ()))


def build_graph(room: Room) -> WaitGraph:
    """Builds the graph from what every rank stands at. Linear in ranks plus the members of the distinct operations."""
    meetings: dict[MeetingKey, Meeting] = {}
    edges: dict[Node, tuple[Node, ...]] = {}
    for rank in room.standings:
        keys = room.keys(rank)
        if not keys:
            continue
        edges[rank] = keys
        for key in keys:
            if key not in meetings:
                meeting = meetings[key] = room.meet(key)
                edges[key] = meeting.needs
    return WaitGraph(room, meetings, edges | _held_by_batches(edges, meetings))


def _held_by_batches(edges: dict[Node, tuple[Node, ...]], meetings: dict[MeetingKey, Meeting]) -> dict[Node, tuple[Node, ...]]:
    """Transfers that both ends have entered and that wait all the same: for the rest of the batch that one end has launched."""
    held: dict[Node, tuple[Node, ...]] = {}
    pending = [key for key, meeting in meetings.items() if key.is_p2p and meeting.needs]
    while pending:
        for rank in meetings[pending.pop()].waiting:
            batch = [key for key in edges[rank] if not isinstance(key, int) and key.is_p2p]
            fresh = [key for key in batch if meetings[key].is_full and rank not in held.get(key, ())]
            for key in fresh if len(batch) > 1 else ():
                held[key] = (*held.get(key, ()), rank)
                pending.append(key)
    return held


def explore(room: Room) -> WaitGraph:
    """Builds the graph from the oldest fronts; tries alternates only while those leave no root and no cycle."""
    graph = first = build_graph(room)
    while not graph.roots and not graph.cycles:
        stuck = {rank for meeting in graph.dead_ends for rank in meeting.waiting}
        deeper = {
            rank: room.depth.get(rank, 1) + 1
            for rank in stuck
            if room.standings[rank].stance is Stance.WAITING and len(room.standings[rank].fronts) > room.depth.get(rank, 1)
        }
        if not deeper:
            return first
        room = replace(room, depth={**room.depth, **deeper})
        graph = build_graph(room)
    return graph if graph.roots else first


def _order(node: Node) -> tuple[int, ...]:
    if isinstance(node, int):
        return (0, node)
    return (1, node.group, -1 if node.seq is None else node.seq, node.src, node.dst)


def _components(edges: dict[Node, tuple[Node, ...]]) -> Iterator[frozenset[Node]]:
    """Strongly connected components of all nodes (Tarjan, without recursion: chains can be as long as the job is large)."""
    index: dict[Node, int] = {}
    low: dict[Node, int] = {}
    stack: list[Node] = []
    on_stack: set[Node] = set()
    for start, onward in edges.items():
        if start in index:
            continue
        work: list[tuple[Node, Iterator[Node]]] = [(start, iter(onward))]
        index[start] = low[start] = len(index)
        stack.append(start)
        on_stack.add(start)
        while work:
            node, targets = work[-1]
            for target in targets:
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    on_stack.add(target)
                    work.append((target, iter(edges.get(target, ()))))
                    break
                if target in on_stack:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    yield _pop_component(node, stack, on_stack)


def _pop_component(root: Node, stack: list[Node], on_stack: set[Node]) -> frozenset[Node]:
    component: set[Node] = set()
    while root not in component:
        member = stack.pop()
        on_stack.discard(member)
        component.add(member)
    return frozenset(component)
