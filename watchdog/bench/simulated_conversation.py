"""A conversation with simulated nodes: the same requests and answers as with real ones, packed as they travel."""

import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from copy import copy
from enum import Enum

from msgspec.structs import replace

from pardbg.collectors.jobs.query import ChosenJob
from pardbg.watchdog.bench.simulated_nodes import SimulatedNodes
from pardbg.watchdog.model.evidence import Evidence, FlightRecording, JobDescription, Stack
from pardbg.watchdog.model.names import AbsenceReason, JobSource
from pardbg.watchdog.model.wanted import Cut
from pardbg.watchdog.model.world import RankProcess, World
from pardbg.watchdog.scan.nodes.messages import (
    Entries,
    Find,
    Found,
    ReadEntries,
    Reply,
    Request,
    Seen,
    TakeSample,
    decode_request,
    encode,
)
from pardbg.watchdog.transport.answer import Answer, no_answer
from pardbg.watchdog.transport.lines import pack, unpack

_MOST_BYTES = 64 * 1024**2


class Illness(Enum):
    """What is the matter with a node."""

    DEAD = "dead"
    SLOW = "slow"
    RUBBISH = "rubbish"


class SimulatedConversation:
    """What `NodesSite` speaks to. Ill nodes do not answer, answer too late, or something else than was asked.

    Idle ones have no rank of the job, and answer no more once they have said so.
    Both samples are the same: the job stands still. ``bytes_of`` is, by node, how many bytes each rank's part of a sample takes
    on its way, before base64; ``asked`` counts the requests to each node.
    """

    def __init__(self, simulated: SimulatedNodes) -> None:
        """Has all nodes take their samples."""
        self._simulated = simulated
        self._ill: Mapping[str, Illness] = {}
        self._idle: tuple[str, ...] = ()
        self.asked: Counter[str] = Counter()
        self._samples = {node: [pack(_sample(evidence, number)) for number in (0, 1)] for node, evidence in simulated.nodes()}
        self._ranks: dict[str, list[RankProcess]] = {node: [] for node in self._samples}
        description = simulated.job.observation
        for rank in description.ranks if isinstance(description, JobDescription) else ():
            process = RankProcess(rank=rank.rank, pid=rank.pid or 1, started_ticks=1, host=rank.host or "")
            self._ranks[rank.host or ""].append(process)
        self.bytes_of = {node: len(packed[0]) / max(len(self._ranks[node]), 1) for node, packed in self._samples.items()}

    def with_ill(self, ill: Mapping[str, Illness]) -> "SimulatedConversation":
        """The same nodes, of which these are ill."""
        other = copy(self)
        other._ill, other.asked = ill, Counter()  # noqa: SLF001 - its own kind
        return other

    def with_idle(self, *idle: str) -> "SimulatedConversation":
        """The same nodes, and these besides."""
        other = copy(self)
        other._idle, other.asked = idle, Counter()  # noqa: SLF001 - its own kind
        return other

    @property
    def nodes(self) -> tuple[str, ...]:
        """All of them."""
        return (*self._samples, *self._idle)

    def ask(self, data: bytes, until_s: float, nodes: Collection[str] | None = None) -> Iterator[Answer]:
        """As `Conversation.ask`; a slow node takes all the time there is."""
        request = decode_request(data)
        cuts = self._simulated.entries(request.wanted) if isinstance(request, ReadEntries) else ()
        self.asked.update(self.nodes if nodes is None else nodes)
        for node in self.nodes if nodes is None else nodes:
            illness = self._ill.get(node)
            if node in self._idle:
                illness = None if isinstance(request, Find) else Illness.DEAD
            if illness is None:
                yield Answer(node=node, data=unpack(self._answer(node, request, cuts), _MOST_BYTES))
            elif illness is Illness.RUBBISH:
                yield Answer(node=node, data=b"\x93\x01rubbish")
            elif illness is Illness.DEAD:
                yield no_answer(node, AbsenceReason.UNREACHABLE, "it has never answered")
        for node in (node for node, illness in self._ill.items() if illness is Illness.SLOW):
            if nodes is None or node in nodes:
                time.sleep(max(until_s - time.monotonic(), 0.0))
                yield no_answer(node, AbsenceReason.TIMED_OUT, "no answer in time")

    def _answer(self, node: str, request: Request, cuts: tuple[Cut, ...]) -> bytes:
        if isinstance(request, TakeSample):
            return self._samples[node][request.number]
        return pack(encode(self._reply(node, request, cuts)))

    def _reply(self, node: str, request: Request, cuts: tuple[Cut, ...]) -> Reply:
        if node in self._idle:
            return Found(problem="no rank of the job was found")
        here = {rank.rank for rank in self._ranks[node]}
        if isinstance(request, Find):
            size = sum(map(len, self._ranks.values()))
            world = World(world_size=size, store="10.0.0.1:29500", ranks=tuple(self._ranks[node]))
            return Found(chosen=ChosenJob(world=world, job_id="sim", source=JobSource.RUN))
        if isinstance(request, ReadEntries):
            return Entries(cuts=tuple(cut for cut in cuts if cut.wanted.rank in here))
        return Seen()


def _sample(evidence: Iterable[Evidence], number: int) -> bytes:
    seen = tuple(
        replace(item, observation=replace(item.observation, sample=number))
        if isinstance(item.observation, FlightRecording | Stack)
        else item
        for item in evidence
    )
    return encode(Seen(evidence=seen))
