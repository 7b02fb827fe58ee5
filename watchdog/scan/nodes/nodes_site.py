"""All nodes of a job, behind one conversation. Each is asked for its part; a node that does not answer is an unknown.

Cost and deadlines on a node: those of `local_site.py`. Deadline here: that of each request; a node that is late for one is
asked again for the next. Nothing stays on the nodes.
"""

import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from pardbg.collectors.jobs.query import ChosenJob, JobQuery
from pardbg.collectors.jobs.slurm.node_names import fold_nodes
from pardbg.collectors.live.moment import now_rfc3339
from pardbg.watchdog.errors import InputError, ParseError
from pardbg.watchdog.model.evidence import Absence, Evidence
from pardbg.watchdog.model.garbage import without_garbage_collection
from pardbg.watchdog.model.names import AbsenceReason, CollectorName
from pardbg.watchdog.model.wanted import Cut, Wanted
from pardbg.watchdog.scan.nodes.checking import check_reply
from pardbg.watchdog.scan.nodes.merging import merge
from pardbg.watchdog.scan.nodes.messages import (
    AttachTo,
    Entries,
    Failed,
    Find,
    Found,
    ReadEntries,
    ReadFaultStacks,
    ReadLogs,
    ReadSoftware,
    Reply,
    Request,
    Seen,
    TakeNativeStacks,
    TakeSample,
    decode_reply,
    encode,
)
from pardbg.watchdog.scan.sample import Sample
from pardbg.watchdog.scan.site import Attachment
from pardbg.watchdog.store.sharing import Sharing
from pardbg.watchdog.transport.answer import Answer

_FIND_S = 20.0
_LOOK_S = 15.0
_MOST_REASONS = 3
_ON_THE_WAY_S = 1.0
"""What an answer may take beyond the time that its node was given."""


class Talk(Protocol):
    """What is needed of a `Conversation`."""

    @property
    def nodes(self) -> tuple[str, ...]:
        """All nodes."""

    def ask(self, data: bytes, until_s: float, nodes: Collection[str] | None = None) -> Iterable[Answer]:
        """One answer of each node that is asked (None: all), or why there is none, by a moment on the monotonic clock."""


class NodesSite:
    """The nodes of a conversation, for one job."""

    def __init__(
        self,
        conversation: Talk,
        query: JobQuery,
        unreached: Mapping[str, Absence] | None = None,
        *,
        find_s: float = _FIND_S,
        look_s: float = _LOOK_S,
    ) -> None:
        """Asks nothing yet.

        Args:
            conversation: with the nodes.
            query: which job.
            unreached: nodes of the job that the conversation leaves out, and why.
            find_s: how long a node may take to find the job.
            look_s: how long it may take for each other request.
        """
        self._conversation = conversation
        self._find_s, self._look_s = find_s, look_s
        self._query = query
        self._unreached = dict(unreached or {})
        self._absent: dict[str, Absence] = {}
        self._involved: frozenset[str] = frozenset()
        self._node_of: dict[int, str] = {}
        self._late: list[str] = []
        self._sharing = Sharing()

    def find(self) -> ChosenJob:
        """See `Site`."""
        self._absent = dict(self._unreached)
        query = self._query
        request = Find(within_s=self._find_s, job=query.job, pids=query.pids, world_size=query.world_size)
        replies = self._ask(request, time.monotonic() + self._find_s)
        found = {node: reply for node, reply in replies.items() if isinstance(reply, Found)}
        chosen = merge(found, is_whole=not self._absent) if found else None
        self._involved = frozenset(node for node, reply in found.items() if reply.chosen is not None)
        self._node_of = {
            rank.rank: node for node, reply in found.items() if reply.chosen is not None for rank in reply.chosen.world.ranks
        }
        if chosen is None:
            raise InputError(self.remarks[0], remedy="see that `pardbg collect` can be run on the nodes")
        return chosen

    @without_garbage_collection()
    def sample(self, number: int, until_s: float) -> Sample:
        """See `Site`."""
        began_at_s, taken_at = time.monotonic(), now_rfc3339()
        seen = self._look(TakeSample(within_s=self._look_s, number=number), until_s)
        refused = frozenset(rank for part in seen for rank in part.refused_ranks)
        return Sample((*self._evidence(seen), *self.absences()), taken_at, began_at_s, refused)

    def attach(self, ranks: Sequence[int], sample: int, until_s: float, *, is_kept: bool) -> Attachment:
        """See `Site`."""
        seen = self._look(AttachTo(within_s=self._look_s, ranks=tuple(ranks), sample=sample, is_kept=is_kept), until_s)
        return Attachment(self._evidence(seen), sum(part.kept_count for part in seen))

    def software(self, until_s: float) -> tuple[Evidence, ...]:
        """See `Site`."""
        return self._evidence(self._look(ReadSoftware(within_s=self._look_s), until_s))

    def entries(self, wanted: Sequence[Wanted], until_s: float) -> tuple[Cut, ...]:
        """See `Site`: the nodes send digests of their rings, and keep the rings."""
        request = ReadEntries(within_s=self._look_s, wanted=tuple(wanted))
        nodes = {self._node_of[one.rank] for one in wanted if one.rank in self._node_of}
        replies = self._ask(request, until_s, sorted(nodes)).values() if nodes else ()
        return tuple(cut for reply in replies if isinstance(reply, Entries) for cut in reply.cuts)

    def logs(self, until_s: float) -> tuple[Evidence, ...]:
        """See `Site`."""
        return self._evidence(self._look(ReadLogs(within_s=self._look_s), until_s))

    def fault_stacks(self, ranks: Collection[int], until_s: float) -> tuple[Evidence, ...]:
        """See `Site`."""
        return self._evidence(self._look(ReadFaultStacks(within_s=self._look_s, ranks=tuple(sorted(ranks))), until_s))

    def native_stacks(self, ranks: Collection[int], sample: int, until_s: float) -> tuple[Evidence, ...]:
        """See `Site`."""
        request = TakeNativeStacks(within_s=self._look_s, ranks=tuple(sorted(ranks)), sample=sample)
        return self._evidence(self._look(request, until_s))

    def absences(self) -> Iterator[Evidence]:
        """One for each node that has not answered all it was asked, and why."""
        for node, absence in self._absent.items():
            yield Evidence(source=CollectorName.HOST, rank=None, host=node, observation=absence, origin=node)

    @property
    def where(self) -> str:
        """See `Site`."""
        return f"the {self._count_answering()} of {self._count()} nodes that answered"

    @property
    def remarks(self) -> tuple[str, ...]:
        """See `Site`: how many nodes have answered, and which have not."""
        if not self._absent:
            return ()
        told = f"{self._count_answering()} of {self._count()} nodes answered, missing {fold_nodes(self._absent)}"
        reasons = Counter(absence.detail for absence in self._absent.values())
        return (f"{told}: {'; '.join(f'{detail} ({count})' for detail, count in reasons.most_common(_MOST_REASONS))}",)

    def _count(self) -> int:
        return len(self._conversation.nodes) + len(self._unreached)

    def _count_answering(self) -> int:
        return self._count() - len(self._absent)

    def _evidence(self, seen: Iterable[Seen]) -> tuple[Evidence, ...]:
        return tuple(self._sharing.of(item) for part in seen for item in part.evidence)

    def _look(self, request: Request, until_s: float) -> list[Seen]:
        return [reply for reply in self._ask(request, until_s).values() if isinstance(reply, Seen)]

    def _ask(self, request: Request, until_s: float, nodes: Collection[str] | None = None) -> dict[str, Reply]:
        """By node, all of them if none are named; a node without an answer is remembered."""
        until_s = min(until_s, time.monotonic() + request.within_s + _ON_THE_WAY_S)
        asked = self._waited_for(request, self._conversation.nodes if nodes is None else nodes)
        replies: dict[str, Reply] = {}
        for answer in self._conversation.ask(encode(request), until_s, asked):
            reply = answer.absence or _read(answer.data or b"")
            if isinstance(reply, Absence):
                self._absent[answer.node] = reply
                self._late += [answer.node] if reply.reason is AbsenceReason.TIMED_OUT else []
            else:
                replies[answer.node] = reply
        return dict(sorted(replies.items()))

    def _waited_for(self, request: Request, nodes: Collection[str]) -> list[str]:
        """Those that have a part of the job and are worth waiting for: who is late twice would be late each time."""
        if isinstance(request, Find):
            self._late = []
            return list(nodes)
        counts = Counter(self._late)
        most = 1 if isinstance(request, TakeSample) else 0
        return [node for node in nodes if node in self._involved and counts[node] <= most]


def _read(data: bytes) -> Reply | Absence:
    try:
        reply = decode_reply(data)
        check_reply(reply)
    except ParseError as error:
        return Absence(reason=AbsenceReason.UNREADABLE, detail=str(error))
    return Absence(reason=AbsenceReason.UNSUPPORTED, detail=reply.problem) if isinstance(reply, Failed) else reply
