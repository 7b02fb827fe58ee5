"""From what the ranks of one run have left to evidence, as a scan of a running job gives it: one sample. Pure."""

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from pardbg.collectors.ended.broken import reopen_last
from pardbg.collectors.ended.last_words import describe_cgroup, find_ending, last_stack
from pardbg.collectors.ended.requests import LastRead
from pardbg.collectors.ended.runs import EndedRank, Run
from pardbg.collectors.live.moment import as_rfc3339
from pardbg.collectors.live.probe.members import name_members
from pardbg.collectors.live.recorders.outcome import Obtained
from pardbg.collectors.probe.places import PAGE_FILE, ROUTING_FILE
from pardbg.collectors.walking import printable
from pardbg.watchdog.model.evidence import Absence, Evidence, FlightRecording, JobDescription, Observation, RankDescription
from pardbg.watchdog.model.heartbeat import Ending
from pardbg.watchdog.model.names import AbsenceReason, CollectorName
from pardbg.watchdog.model.world import RankProcess

_GONE = "gone"


class EndedEvidence:
    """The evidence of one run.

    Attributes:
        endings: the last words by rank, None for a rank without one.
    """

    def __init__(self, run: Run, last: Mapping[int, LastRead], unread: Mapping[int, Absence]) -> None:
        """Puts it together.

        Args:
            run: the ranks.
            last: what their last files say, by rank.
            unread: why these could not be read, by rank.
        """
        self._run = run
        self._last = last
        self._unread = unread
        self.endings = {
            rank.rank: find_ending(rank.heartbeat, last.get(rank.rank), rank.folder.exit_code) for rank in run.ranks
        }

    def describe(self, job_id: str) -> Evidence:
        """The job, all of whose ranks here are gone."""
        description = JobDescription(
            job=job_id,
            world_size=self._run.key.world_size,
            ranks=tuple(map(self._describe_rank, self._run.ranks)),
            sampled_at=as_rfc3339(self._run.ended_ns),
            world=self._run.key.store or None,
            attempt=self._run.key.attempt,
        )
        return Evidence(
            source=CollectorName.HOST,
            rank=None,
            observed_at=as_rfc3339(self._run.ended_ns),
            observation=description,
            origin=printable(self._run.ranks[0].folder.path),
        )

    def of_ranks(self) -> list[Evidence]:
        """What every rank has left, and what it has not."""
        found = [item for rank in self._run.ranks for item in self._of_rank(rank)]
        return name_members(found, {rank.rank: rank.groups for rank in self._run.ranks if rank.groups})

    def of_routing(self) -> list[Evidence]:
        """What the probes have counted of how tokens were routed."""
        return [
            _evidence(rank, CollectorName.ROUTING, last.routing, f"{printable(rank.folder.path)}/{ROUTING_FILE}", rank.seen_ns)
            for rank in self._run.ranks
            if (last := self._last.get(rank.rank)) is not None and last.routing is not None and last.routing.rows
        ]

    def exit_code(self, rank: EndedRank) -> int | None:
        """As Python writes it; None if nobody knows."""
        ending = self.endings[rank.rank]
        return rank.folder.exit_code if rank.folder.exit_code is not None else ending.code if ending is not None else None

    def _describe_rank(self, rank: EndedRank) -> RankDescription:
        return RankDescription(
            rank=rank.rank,
            host=rank.own.host,
            pid=rank.folder.pid,
            local_rank=rank.identity.local_rank,
            state=_GONE,
            exit_code=self.exit_code(rank),
        )

    def _of_rank(self, rank: EndedRank) -> Iterator[Evidence]:
        last, ending = self._last.get(rank.rank), self.endings[rank.rank]
        folder = printable(rank.folder.path)
        if rank.heartbeat is not None and (rank.is_member or ending is not None):
            beat = replace(rank.heartbeat, ending=ending, later_oom_kills=self._later_oom_kills(rank))
            yield _evidence(rank, CollectorName.HOST, beat, f"{folder}/{PAGE_FILE}", _moment(rank, ending))
        stack = last_stack(ending, last)
        if stack is not None:
            seen, origin = stack
            yield _evidence(rank, CollectorName.STACKS, replace(seen, pid=rank.folder.pid), origin, _moment(rank, ending))
        if rank.rank in self._unread:
            yield _evidence(rank, CollectorName.HOST, self._unread[rank.rank], folder, rank.seen_ns)
        dump = last.dump if last is not None else None
        if isinstance(dump, Obtained):
            recording = FlightRecording(recording=reopen_last(dump.recording, ending))
            yield _evidence(rank, CollectorName.FLIGHT_RECORDER, recording, dump.origin, dump.observed_ns)
            return
        absence = Absence(reason=AbsenceReason.GONE, detail="its process has ended, and left no dump of its recorder")
        if dump is not None:
            absence = Absence(reason=dump.reason, detail=dump.detail)
        origin = dump.origin if dump is not None else folder
        yield _evidence(rank, CollectorName.FLIGHT_RECORDER, absence, origin, rank.seen_ns)

    def _later_oom_kills(self, rank: EndedRank) -> int | None:
        """The most that anybody has counted in its cgroup since."""
        cgroup = describe_cgroup(rank.own.cgroup)
        counts = []
        for other in self._run.ranks if cgroup else ():
            if describe_cgroup(other.own.cgroup) == cgroup:
                last, ending = self._last.get(other.rank), self.endings[other.rank]
                counts += [last.oom_kills if last else None, ending.oom_kills if ending else None]
        return max((count for count in counts if count is not None), default=None)


def as_processes(run: Run) -> list[RankProcess]:
    """The ranks as processes, for who reads the source lines of their stacks."""
    return [
        RankProcess(
            rank=rank.rank,
            pid=rank.folder.pid,
            started_ticks=rank.folder.started_ticks,
            host=rank.own.host or "",
            local_rank=rank.identity.local_rank,
            uid=rank.folder.uid,
        )
        for rank in run.ranks
    ]


def _moment(rank: EndedRank, ending: Ending | None) -> int:
    return ending.at_ns if ending is not None and ending.at_ns is not None else rank.seen_ns


def _evidence(rank: EndedRank, source: CollectorName, seen: Observation, origin: str, at_ns: int) -> Evidence:
    return Evidence(
        source=source,
        rank=rank.rank,
        host=rank.own.host,
        observed_at=as_rfc3339(at_ns),
        observation=seen,
        origin=origin,
    )
