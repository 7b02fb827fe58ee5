"""All nodes of a job, behind one conversation. Each is asked for its part; a node that does not answer is an unknown.

Cost and deadlines on a node: those of `local_site.py`. Deadline here: that of each request; a node that has missed one is
asked the next, too, and counts again as soon as it answers. Nothing stays on the nodes.
"""

import math
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pardbg.collectors.jobs.query import ChosenJob, JobQuery
from pardbg.collectors.live.moment import now_rfc3339
from pardbg.watchdog.errors import AmbiguousJobError, InputError
from pardbg.watchdog.model.evidence import Absence, Evidence, FlightRecording
from pardbg.watchdog.model.garbage import without_garbage_collection
from pardbg.watchdog.model.names import AbsenceReason, CollectorName
from pardbg.watchdog.model.reach import NO_WAY, Reach
from pardbg.watchdog.model.wanted import Cut, Wanted
from pardbg.watchdog.scan.nodes.merging import merge
from pardbg.watchdog.scan.nodes.messages import (
    AttachTo,
    Entries,
    Find,
    Found,
    ReadEntries,
    ReadFaultStacks,
    ReadLogs,
    ReadSoftware,
    Request,
    Seen,
    TakeNativeStacks,
    TakeSample,
)
from pardbg.watchdog.scan.nodes.rounds import Rounds, Talk
from pardbg.watchdog.scan.sample import InterruptedSampleError, Sample
from pardbg.watchdog.scan.site import Attachment
from pardbg.watchdog.store.sharing import Sharing

_LEAST_S = 0.5


@dataclass(frozen=True, kw_only=True)
class Times:
    """How long a node may take to find the job, and for each other request; when finding it must be over (monotonic clock)."""

    find_s: float = 20.0
    look_s: float = 15.0
    until_s: float = math.inf


class NobodyAnsweredError(InputError):
    """No node has answered that may have a rank of the job. ``absences``: why, by node; ``is_interrupted``: by Ctrl-C."""

    remedy = "see that `pardbg collect` can be run on the nodes"

    def __init__(self, rounds: Rounds, more: str = "") -> None:
        super().__init__(f"{rounds.remarks[0]}{more}")
        self.absences = dict(rounds.absent)
        self.is_interrupted = rounds.is_interrupted


class NoRankError(InputError):
    """All nodes have answered, and none has a rank of the job."""


class NodesSite:
    """The nodes of a conversation, for one job."""

    def __init__(
        self,
        conversation: Talk,
        query: JobQuery,
        unreached: Mapping[str, Absence] | None = None,
        times: Times | None = None,
        reach: Reach = NO_WAY,
    ) -> None:
        """Asks nothing yet.

        Args:
            conversation: with the nodes.
            query: which job.
            unreached: nodes of the job that the conversation leaves out, and why.
            times: None for the usual ones.
            reach: what leads a person to the nodes.
        """
        self.reach = reach
        self.silent: dict[str, Absence] = {}  # when the job was looked for
        self._rounds = Rounds(conversation, unreached or {})
        self._times = times or Times()
        self._query = query
        self._involved: list[str] = []
        self._node_of: dict[int, str] = {}
        self._recorded: set[int | None] = set()
        self._sharing = Sharing()

    def find(self) -> ChosenJob:
        """See `Site`. After Ctrl-C: what the nodes that had answered have of the job.

        Raises:
            NobodyAnsweredError: if no node has answered that may have a rank of it.
            NoRankError: if there is none.
            InputError: if they have several worlds.
        """
        rounds, query = self._rounds, self._query
        rounds.start_over()
        until_s = max(self._times.until_s, time.monotonic() + _LEAST_S)
        within_s = min(self._times.find_s, until_s - time.monotonic())
        request = Find(within_s=within_s, job=query.job, pids=query.pids, world_size=query.world_size)
        replies = rounds.ask(request, until_s, rounds.nodes)
        found = {node: reply for node, reply in replies.items() if isinstance(reply, Found)}
        if not found:
            raise NobodyAnsweredError(rounds)
        parts = {node: reply.chosen.world for node, reply in found.items() if reply.chosen is not None}
        if not parts and rounds.absent and not any(reply.choices for reply in found.values()):
            raise NobodyAnsweredError(rounds, "; the others have no rank of the job")
        try:
            chosen = merge(found, is_whole=not rounds.absent)
        except AmbiguousJobError:
            raise
        except InputError as error:
            raise error if parts else NoRankError(str(error), remedy=error.remedy) from error
        self.silent = dict(rounds.absent)
        self._recorded = set()
        self._involved = list(parts)
        self._node_of = {rank.rank: node for node, world in parts.items() for rank in world.ranks}
        return chosen

    @without_garbage_collection()
    def sample(self, number: int, until_s: float) -> Sample:
        """See `Site`."""
        began_at_s, taken_at = time.monotonic(), now_rfc3339()
        try:
            seen = self._look(TakeSample(within_s=self._within(until_s), number=number), until_s)
        except KeyboardInterrupt:
            raise InterruptedSampleError(Sample(tuple(self._unlooked()), taken_at, began_at_s)) from None
        refused = frozenset(rank for part in seen.values() for rank in part.refused_ranks)
        found = self._evidence(seen)
        self._recorded |= {item.rank for item in found if isinstance(item.observation, FlightRecording)}
        evidence = (*found, *self.absences(), *self._unrecorded(seen, self._node_of.keys() - self._recorded))
        sample = Sample(evidence, taken_at, began_at_s, refused)
        if self._rounds.is_interrupted:
            raise InterruptedSampleError(sample)
        return sample

    def attach(self, ranks: Sequence[int], sample: int, until_s: float, *, is_kept: bool) -> Attachment:
        """See `Site`."""
        request = AttachTo(within_s=self._within(until_s), ranks=tuple(ranks), sample=sample, is_kept=is_kept)
        seen = self._look(request, until_s)
        evidence = (*self._evidence(seen), *self._unrecorded(seen, ranks))
        return Attachment(evidence, sum(part.kept_count for part in seen.values()))

    def software(self, until_s: float) -> tuple[Evidence, ...]:
        """See `Site`."""
        return self._read(CollectorName.HOST, ReadSoftware(within_s=self._within(until_s)), until_s)

    def entries(self, wanted: Sequence[Wanted], until_s: float) -> tuple[Cut, ...]:
        """See `Site`: the nodes send digests of their rings, and keep the rings."""
        request = ReadEntries(within_s=self._within(until_s), wanted=tuple(wanted))
        nodes = {self._node_of[one.rank] for one in wanted if one.rank in self._node_of}
        replies = self._rounds.ask(request, until_s, sorted(nodes)).values() if nodes else ()
        return tuple(cut for reply in replies if isinstance(reply, Entries) for cut in reply.cuts)

    def logs(self, until_s: float) -> tuple[Evidence, ...]:
        """See `Site`."""
        return self._read(CollectorName.RANK_LOG, ReadLogs(within_s=self._within(until_s)), until_s)

    def routing(self) -> tuple[Evidence, ...]:
        """See `Site`: counts of many nodes would be too much to send; their agents tell."""
        return ()

    def fault_stacks(self, ranks: Collection[int], until_s: float) -> tuple[Evidence, ...]:
        """See `Site`."""
        request = ReadFaultStacks(within_s=self._within(until_s), ranks=tuple(sorted(ranks)))
        return self._read(CollectorName.STACKS, request, until_s)

    def native_stacks(self, ranks: Collection[int], sample: int, until_s: float) -> tuple[Evidence, ...]:
        """See `Site`."""
        request = TakeNativeStacks(within_s=self._within(until_s), ranks=tuple(sorted(ranks)), sample=sample)
        return self._read(CollectorName.STACKS, request, until_s)

    def absences(self) -> Iterator[Evidence]:
        """One for each node that has not answered all it was asked, and why."""
        for node, absence in self._rounds.absent.items():
            yield Evidence(source=CollectorName.HOST, rank=None, host=node, observation=absence, origin=node)

    def _unlooked(self) -> Iterator[Evidence]:
        """Of an interrupted scan: the ranks that were found, and not looked at."""
        why = Absence(reason=AbsenceReason.SKIPPED, detail="interrupted before it was looked at")
        for rank, node in sorted(self._node_of.items()):
            yield Evidence(source=CollectorName.FLIGHT_RECORDER, rank=rank, host=node, observation=why, origin=node)
        yield from self.absences()

    @property
    def where(self) -> str:
        """See `Site`."""
        return self._rounds.describe()

    @property
    def remarks(self) -> tuple[str, ...]:
        """See `Site`: how many nodes have answered, and which have not."""
        return self._rounds.remarks

    def _within(self, until_s: float) -> float:
        """How long a node may take for what is worth nothing after ``until_s``."""
        return max(min(self._times.look_s, until_s - time.monotonic()), _LEAST_S)

    def _evidence(self, seen: Mapping[str, Seen]) -> tuple[Evidence, ...]:
        return tuple(self._sharing.of(item) for part in seen.values() for item in part.evidence)

    def _look(self, request: Request, until_s: float) -> dict[str, Seen]:
        """Asks the nodes that have a part of the job."""
        replies = self._rounds.ask(request, until_s, self._involved)
        return {node: reply for node, reply in replies.items() if isinstance(reply, Seen)}

    def _read(self, source: CollectorName, request: Request, until_s: float) -> tuple[Evidence, ...]:
        """What a look gave, and which nodes that have answered before did not answer now."""
        known = self._rounds.absent.copy()
        seen = self._look(request, until_s)
        missed = (node for node in self._involved if node not in seen and node not in known)
        absences = (
            Evidence(source=source, rank=None, host=node, observation=self._why_silent(node), origin=node) for node in missed
        )
        return (*self._evidence(seen), *absences)

    def _unrecorded(self, seen: Mapping[str, Seen], ranks: Iterable[int]) -> Iterator[Evidence]:
        """Why nothing is known of the recorders of those ranks that live on nodes which did not answer."""
        for rank in sorted(ranks):
            node = self._node_of.get(rank)
            if node is not None and node not in seen:
                absence, source = self._why_silent(node), CollectorName.FLIGHT_RECORDER
                yield Evidence(source=source, rank=rank, host=node, observation=absence, origin=node)

    def _why_silent(self, node: str) -> Absence:
        known = self._rounds.absent.get(node)
        detail = f"{node} did not answer: {known.detail}" if known else f"{node} was not asked: the time was up (--timeout)"
        return Absence(reason=known.reason if known else AbsenceReason.TIMED_OUT, detail=detail)
