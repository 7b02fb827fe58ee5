"""A node's side of a scan: each request is put to the part of the job that runs here.

State: the job found last, and the rings of which digests were sent last.
"""

import time
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from pardbg.collectors.cutting import cut
from pardbg.collectors.digesting import digest
from pardbg.collectors.jobs.find import find_world
from pardbg.collectors.jobs.query import JobQuery
from pardbg.watchdog.errors import AmbiguousJobError, InputError, ParseError
from pardbg.watchdog.model.evidence import Evidence, FlightRecording
from pardbg.watchdog.model.recording import Recording
from pardbg.watchdog.model.wanted import Cut, Wanted
from pardbg.watchdog.scan.ended import add_ended_ranks
from pardbg.watchdog.scan.local_site import LocalSite
from pardbg.watchdog.scan.nodes.messages import (
    AttachTo,
    Entries,
    Failed,
    Find,
    Found,
    Looking,
    ReadEntries,
    ReadFaultStacks,
    ReadLogs,
    ReadSoftware,
    Reply,
    Request,
    Seen,
    TakeNativeStacks,
    TakeSample,
    decode_request,
    encode,
)


class Server:
    """Answers requests about the one job that it was asked to find."""

    def __init__(self, node: str, uid: int | None = None) -> None:
        """``node``: the name of this node among those of the job. ``uid``: whose processes are seen, None for everybody's."""
        self._node, self._uid = node, uid
        self._site: LocalSite | None = None
        self._rings: dict[int, Recording] = {}

    def answer(self, data: bytes) -> bytes:
        """One request, one answer, whatever happens."""
        try:
            return encode(self._answer(decode_request(data)))
        except ParseError as error:
            return encode(Failed(problem=str(error)))

    def _answer(self, request: Request) -> Reply:
        if isinstance(request, Find):
            return self._find(request)
        if self._site is None:
            return Failed(problem="it was asked about a job before it was told which")
        if isinstance(request, ReadEntries):
            return Entries(cuts=tuple(self._cut(request.wanted)))
        seen = _look(self._site, request)
        return replace(seen, evidence=tuple(map(self._shorten, seen.evidence)))

    def _shorten(self, item: Evidence) -> Evidence:
        """Keeps a ring here, and sends its digest."""
        seen = item.observation
        if not isinstance(seen, FlightRecording) or item.rank is None:
            return item
        self._rings[item.rank] = seen.recording
        return replace(item, observation=replace(seen, recording=digest(seen.recording)))

    def _cut(self, wanted: Iterable[Wanted]) -> Iterator[Cut]:
        for one in wanted:
            ring = self._rings.get(one.rank)
            if ring is not None:
                yield Cut(wanted=one, recording=cut(ring, one))

    def _find(self, request: Find) -> Found:
        query = JobQuery(job=request.job, pids=request.pids, world_size=request.world_size, node=self._node, uid=self._uid)
        site = LocalSite(lambda: add_ended_ranks(find_world(query)))
        try:
            chosen = site.find()
        except AmbiguousJobError as error:
            return Found(problem=str(error), remedy=error.remedy, choices=error.choices)
        except InputError as error:
            return Found(problem=str(error), remedy=error.remedy)
        self._site, self._rings = site, {}
        return Found(chosen=chosen)


def _look(site: LocalSite, request: Looking) -> Seen:
    until_s = time.monotonic() + request.within_s
    if isinstance(request, TakeSample):
        sample = site.sample(request.number, until_s)
        return Seen(evidence=sample.evidence, taken_at=sample.taken_at, refused_ranks=tuple(sorted(sample.refused_ranks)))
    if isinstance(request, AttachTo):
        attached = site.attach(request.ranks, request.sample, until_s, is_kept=request.is_kept)
        return Seen(evidence=attached.evidence, kept_count=attached.kept_count)
    return Seen(evidence=_read(site, request, until_s))


def _read(
    site: LocalSite, request: ReadSoftware | ReadLogs | ReadFaultStacks | TakeNativeStacks, until_s: float
) -> tuple[Evidence, ...]:
    if isinstance(request, ReadSoftware):
        return site.software(until_s)
    if isinstance(request, ReadLogs):
        return site.logs(until_s)
    if isinstance(request, ReadFaultStacks):
        return site.fault_stacks(request.ranks, until_s)
    return site.native_stacks(request.ranks, request.sample, until_s)
