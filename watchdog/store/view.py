"""The evidence of one job as correlators see it: by rank, oldest sample first, with every absence kept."""

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from msgspec.structs import replace

from pardbg.watchdog.model.device import DeviceSeen
from pardbg.watchdog.model.evidence import (
    Absence,
    Evidence,
    FlightRecording,
    JobDescription,
    LogTraceback,
    Observation,
    RankDescription,
    SchedulerEnding,
    SharedEntries,
    SoftwareSeen,
    Stack,
)
from pardbg.watchdog.model.heartbeat import Ending, EndingKind, Heartbeat
from pardbg.watchdog.model.kernel import KernelLog
from pardbg.watchdog.model.log_event import LogSeen
from pardbg.watchdog.model.members import MAX_WORLD_SIZE, count_members
from pardbg.watchdog.model.names import AbsenceReason, CollectorName
from pardbg.watchdog.model.process import ProcessSample
from pardbg.watchdog.model.recording import Recording
from pardbg.watchdog.model.report import EvidenceLine
from pardbg.watchdog.model.routing import RoutingSeries
from pardbg.watchdog.model.routing_order import in_order
from pardbg.watchdog.store.kernel_events import KernelEvents, RankKnown, with_logged_errors
from pardbg.watchdog.store.ras_polls import RasPolls, largest_answered
from pardbg.watchdog.store.reported_ends import largest_communicator, with_reported_ends
from pardbg.watchdog.store.silent_recorders import silent_recorders
from pardbg.watchdog.store.stale_recorders import samples_by_rank, stale_ranks
from pardbg.watchdog.store.traces import Traces

WORLD_DESC = "default_pg"
ENDED_STATES = frozenset({"gone", "X", "Z"})
INTERRUPTING = frozenset({-1, -2, -6, -15})  # exit codes: launchers and people send the signals, watchdogs abort

_LOOKS_AT_RANKS = (FlightRecording, Stack, ProcessSample, Heartbeat, LogTraceback, SchedulerEnding)
_Sampled = TypeVar("_Sampled", Stack, ProcessSample, Heartbeat, DeviceSeen)


@dataclass(frozen=True)
class EvidenceView:
    """Read-only access to the evidence of one job. Everything is derived from ``evidence``; the order given does not matter."""

    evidence: tuple[Evidence, ...]

    @classmethod
    def of(cls, evidence: Iterable[Evidence]) -> "EvidenceView":
        """Puts evidence into a canonical order, so that no verdict can depend on who was read first."""
        return cls(tuple(sorted(evidence, key=lambda item: (-1 if item.rank is None else item.rank, item.source, item.origin))))

    @cached_property
    def job(self) -> JobDescription:
        """The job's description; empty if there was no ``job.json``."""
        found = (item.observation for item in self.evidence if isinstance(item.observation, JobDescription))
        return next(found, JobDescription(job=None, world_size=None))

    @cached_property
    def processes(self) -> dict[int, RankDescription]:
        """What is known of each rank's process: as described, else as a launcher reported its end."""
        return with_reported_ends(self._described, self.logs)

    @cached_property
    def _described(self) -> dict[int, RankDescription]:
        return {description.rank: description for description in self.job.ranks}

    @cached_property
    def logs(self) -> tuple[Evidence, ...]:
        """The evidence that holds what logs tell beyond tracebacks."""
        return tuple(item for item in self.evidence if isinstance(item.observation, LogSeen))

    @cached_property
    def ended_ranks(self) -> frozenset[int]:
        """The ranks whose processes are known to have ended."""
        return frozenset(
            rank for rank, process in self.processes.items() if process.state in ENDED_STATES or process.exit_code is not None
        )

    @cached_property
    def software(self) -> dict[int, SoftwareSeen]:
        """The versions that ranks run, by rank; NCCL's also from their recorders."""
        seen = {
            item.rank: item.observation
            for item in self.evidence
            if isinstance(item.observation, SoftwareSeen) and item.rank is not None
        }
        for rank, recording in self.recordings.items():
            if recording.library_version:
                known = seen.get(rank, SoftwareSeen())
                seen[rank] = replace(known, nccl=known.nccl or recording.library_version)
        return seen

    @cached_property
    def scheduler_ending(self) -> Evidence | None:
        """What the scheduler says of the end of the job."""
        return next((item for item in self.evidence if isinstance(item.observation, SchedulerEnding)), None)

    @cached_property
    def heartbeats(self) -> dict[int, Heartbeat]:
        """The newest heartbeat of each rank."""
        return {rank: list(found.values())[-1] for rank, found in self._by_sample(_heartbeat).items()}

    @cached_property
    def all_heartbeats(self) -> dict[int, tuple[Heartbeat, ...]]:
        """The heartbeats of each rank, oldest sample first."""
        return {rank: tuple(found.values()) for rank, found in self._by_sample(_heartbeat).items()}

    @cached_property
    def endings(self) -> dict[int, Ending]:
        """The last words of each rank that left any."""
        return {rank: beat.ending for rank, beat in self.heartbeats.items() if beat.ending is not None}

    @cached_property
    def silent_ranks(self) -> frozenset[int]:
        """The ranks that have ended although their probe worked, and nothing says how."""
        wordless = self.ended_ranks & self.heartbeats.keys() - self.endings.keys() - self._logged.keys()
        return frozenset(rank for rank in wordless if rank not in self.processes or self.processes[rank].exit_code is None)

    @cached_property
    def interrupted_ranks(self) -> frozenset[int]:
        """The ranks that somebody else ended, and whose stacks are those of that moment."""
        return frozenset(
            rank
            for rank, ending in self.endings.items()
            if ending.kind is EndingKind.SIGNAL
            and ending.code in INTERRUPTING
            and rank in self.ended_ranks & self.stacks.keys()
        )

    @cached_property
    def samples(self) -> dict[int, tuple[Recording, ...]]:
        """All usable recordings of each rank, oldest sample first. Of an earlier run, or of a recorder that is off, none is."""
        return {rank: samples for rank, samples in self._all_samples.items() if rank not in self.stale_recorders}

    @cached_property
    def stale_recorders(self) -> frozenset[int]:
        """The ranks whose dumps are of an earlier run. What is read from a process that lives is of this one."""
        newest = {rank: samples[-1] for rank, samples in self._all_samples.items() if rank not in self.looks}
        return stale_ranks(newest) if len(newest) == len(self._all_samples) else frozenset()

    @cached_property
    def _all_samples(self) -> dict[int, tuple[Recording, ...]]:
        return samples_by_rank(self.evidence)

    @cached_property
    def routing(self) -> tuple[RoutingSeries, ...]:
        """What was counted of how tokens are routed, a series a rank; files that tell no rank are one each."""
        found = [item for item in self.evidence if isinstance(item.observation, RoutingSeries)]
        by_owner: dict[int | str, list[RoutingSeries]] = {}
        for item in sorted(found, key=lambda item: (item.observed_at or "", item.origin)):
            if isinstance(item.observation, RoutingSeries):
                by_owner.setdefault(item.origin if item.rank is None else item.rank, []).append(item.observation)
        return tuple(_join(series) for series in by_owner.values())

    @cached_property
    def is_of_routing_alone(self) -> bool:
        """Whether nothing but how tokens are routed was seen, so that nothing can be said of who waits."""
        return bool(self.routing) and not any(isinstance(item.observation, _LOOKS_AT_RANKS) for item in self.evidence)

    @cached_property
    def traces(self) -> Traces:
        """What was traced of steps."""
        return Traces.of(self.evidence)

    @cached_property
    def is_of_traces_alone(self) -> bool:
        """Whether nothing but steps was seen, which say who is slow and not who waits now."""
        return bool(self.traces) and not any(isinstance(item.observation, _LOOKS_AT_RANKS) for item in self.evidence)

    @cached_property
    def recordings(self) -> dict[int, Recording]:
        """The newest usable recording of each rank."""
        return {rank: samples[-1] for rank, samples in self.samples.items()}

    @cached_property
    def shared_entries(self) -> dict[tuple[int, str], Recording]:
        """What was read of another rank with the same hashes, by rank and name of the group."""
        seen = (item.observation for item in self.evidence)
        shared = (entries for entries in seen if isinstance(entries, SharedEntries))
        return {(rank, entries.group): entries.recording for entries in shared for rank in entries.ranks}

    @cached_property
    def stacks(self) -> dict[int, tuple[Stack, ...]]:
        """The Python stacks of each rank, oldest sample first."""
        return {rank: tuple(found.values()) for rank, found in self._by_sample(_own_python_stack).items()}

    @cached_property
    def looks(self) -> dict[int, tuple[ProcessSample, ...]]:
        """What `/proc` said of each rank's process, oldest sample first."""
        return {rank: tuple(found.values()) for rank, found in self._by_sample(_process_sample).items()}

    @cached_property
    def devices(self) -> dict[int, DeviceSeen]:
        """The newest that was seen of each rank's GPU."""
        return {rank: seen[-1] for rank, seen in self.all_devices.items()}

    @cached_property
    def all_devices(self) -> dict[int, tuple[DeviceSeen, ...]]:
        """What was seen of each rank's GPU, oldest sample first, with the errors that kernel logs tell of it."""
        return with_logged_errors(self._seen_devices, self.kernel)

    @cached_property
    def _seen_devices(self) -> dict[int, tuple[DeviceSeen, ...]]:
        return {rank: tuple(found.values()) for rank, found in self._by_sample(_device).items()}

    @cached_property
    def kernel(self) -> KernelEvents:
        """What the kernel logs of the job's hosts say."""
        is_logged = any(isinstance(item.observation, KernelLog) for item in self.evidence)
        ranks = {*self.processes, *self._hosts, *self.looks, *self._seen_devices} if is_logged else ()
        return KernelEvents.of(self.evidence, map(self._known, sorted(ranks)))

    @cached_property
    def ras(self) -> RasPolls:
        """What NCCL's RAS answered."""
        return RasPolls.of(self.evidence, self.world_size)

    def _known(self, rank: int) -> RankKnown:
        devices, process = self._seen_devices.get(rank, ()), self.processes.get(rank)
        known = RankKnown.of(rank, self.host(rank), self._described.get(rank), devices, self.looks.get(rank, ()))
        return dataclasses.replace(known, reported_pid=process.pid if process is not None else None)

    @cached_property
    def native_stacks(self) -> dict[int, Stack]:
        """The newest stack with native frames of each rank that was asked for one."""
        return {rank: list(found.values())[-1] for rank, found in self._by_sample(_native_stack).items()}

    @cached_property
    def child_stacks(self) -> dict[int, tuple[Stack, ...]]:
        """The newest stacks of each rank's children."""
        by_rank: dict[int, dict[str, Stack]] = {}
        for item in self.evidence:
            if isinstance(item.observation, Stack) and item.rank is not None and item.observation.child:
                by_rank.setdefault(item.rank, {})[item.observation.child] = item.observation
        return {rank: tuple(found.values()) for rank, found in by_rank.items()}

    def moments(self, rank: int) -> tuple[tuple[Stack | None, ProcessSample | None], ...]:
        """Stack and process of a rank, sample by sample, oldest first; either may be missing."""
        stacks = {stack.sample: stack for stack in self.stacks.get(rank, ())}
        looks = {look.sample: look for look in self.looks.get(rank, ())}
        return tuple((stacks.get(sample), looks.get(sample)) for sample in sorted({*stacks, *looks}))

    def _by_sample(self, choose: Callable[[Observation], _Sampled | None]) -> dict[int, dict[int, _Sampled]]:
        """The chosen observations by rank and sample, both ascending; of one sample the last in the canonical order."""
        by_rank: dict[int, dict[int, _Sampled]] = {}
        for item in self.evidence:
            chosen = choose(item.observation)
            if chosen is not None and item.rank is not None:
                by_rank.setdefault(item.rank, {})[chosen.sample] = chosen
        return {rank: dict(sorted(found.items())) for rank, found in sorted(by_rank.items())}

    @cached_property
    def tracebacks(self) -> dict[int, LogTraceback]:
        """The first traceback in each rank's log that is its own, not the consequence of a lost peer."""
        return {rank: found for rank, found in self._logged.items() if not found.is_consequence}

    @cached_property
    def losses(self) -> dict[int, LogTraceback]:
        """The first traceback in each rank's log that says that a peer was lost."""
        return {rank: found for rank, found in self._logged.items() if found.is_consequence}

    @property
    def bereaved_ranks(self) -> frozenset[int]:
        """The ranks whose logs say that they ended because a peer was lost."""
        return frozenset(self.losses)

    @cached_property
    def _logged(self) -> dict[int, LogTraceback]:
        """What logs tell; where a rank's own last word is an exception, that."""
        logged = {
            item.rank: item.observation
            for item in reversed(self.evidence)
            if isinstance(item.observation, LogTraceback) and item.rank is not None
        }
        return logged | LogTraceback.of_endings(self.endings)

    @cached_property
    def world_size(self) -> int | None:
        """The number of ranks: as described, else as the default group says, else as far as ranks were seen."""
        if self.job.world_size and 0 < self.job.world_size <= MAX_WORLD_SIZE:
            return self.job.world_size
        worlds = [
            max(count_members(config.runs), rank + 1)
            for rank, recording in self.recordings.items()
            for config in recording.configs
            if config.desc == WORLD_DESC
        ]
        if worlds:
            return max(worlds)
        configs = (config for recording in self.recordings.values() for config in recording.configs if config.runs)
        members = [first + step * (count - 1) for config in configs for first, step, count in config.runs[-1:]]
        ranks = [item.rank for item in self.evidence if item.rank is not None and item.rank < MAX_WORLD_SIZE]
        largest = max(largest_communicator(self.logs), largest_answered(self.evidence))
        return max([*members, *ranks, *self.processes, largest - 1, self.traces.last_rank]) + 1 or None

    @cached_property
    def absences(self) -> tuple[Evidence, ...]:
        """Everything that could not be seen, recorders that are off and files that never came included."""
        lost = {
            (item.source, item.rank, item.host if item.rank is None else None, item.observation): item
            for item in self.evidence
            if isinstance(item.observation, Absence)
        }
        return (*lost.values(), *silent_recorders(self))  # what was missing in both samples is missing once

    def host(self, rank: int) -> str | None:
        """The host of a rank, where known."""
        if rank in self.processes and self.processes[rank].host:
            return self.processes[rank].host
        return self._hosts.get(rank)

    @cached_property
    def unseen_hosts(self) -> tuple[str, ...]:
        """The hosts that evidence knows only by what it could not see of them, in order; not those that are gone for good."""
        absent = {
            item.host
            for item in self.evidence
            if item.rank is None and isinstance(item.observation, Absence) and item.observation.reason is not AbsenceReason.GONE
        }
        seen = {item.host for item in self.evidence if not isinstance(item.observation, Absence)}
        return tuple(sorted(host for host in absent - seen if host is not None))

    @cached_property
    def _hosts(self) -> dict[int, str]:
        """The first host that any evidence of a rank names."""
        return {item.rank: item.host for item in reversed(self.evidence) if item.rank is not None and item.host}

    def line(self, source: CollectorName, rank: int, text: str) -> EvidenceLine:
        """Words an observed fact with its origin and time."""
        return self._word(source, rank, text, self._sources.get((source, rank)))

    def heartbeat_line(self, rank: int, text: str) -> EvidenceLine:
        """The same of what a rank's page says."""
        beats = (item for item in reversed(self.evidence) if item.rank == rank and isinstance(item.observation, Heartbeat))
        return self._word(CollectorName.HOST, rank, text, next(beats, None))

    def _word(self, source: CollectorName, rank: int, text: str, item: Evidence | None) -> EvidenceLine:
        return EvidenceLine(
            source=source,
            rank=rank,
            host=self.host(rank),
            at=item.observed_at if item else self.job.sampled_at,
            text=text,
            origin=item.origin if item else self.job_origin,
        )

    @cached_property
    def _sources(self) -> dict[tuple[CollectorName, int], Evidence]:
        """What `line` names as its origin: a heartbeat has lines of its own."""
        return {
            (item.source, item.rank): item
            for item in self.evidence
            if item.rank is not None and not isinstance(item.observation, Heartbeat | SharedEntries | SoftwareSeen)
        }

    @cached_property
    def job_origin(self) -> str:
        """The file that describes the job; empty if none does."""
        return next((item.origin for item in self.evidence if isinstance(item.observation, JobDescription)), "")


def _join(series: list[RoutingSeries]) -> RoutingSeries:
    """The parts of one rank's series, the one written last at the end."""
    if len(series) == 1:
        return series[0]
    return RoutingSeries(
        rows=in_order(row for part in series for row in part.rows),
        names={layer: name for part in series for layer, name in part.names.items()},
        frozen=series[-1].frozen,
        settled=series[-1].settled,
    )


def _own_python_stack(seen: Observation) -> Stack | None:
    return seen if isinstance(seen, Stack) and not seen.child and not seen.is_native else None


def _native_stack(seen: Observation) -> Stack | None:
    return seen if isinstance(seen, Stack) and not seen.child and seen.is_native else None


def _process_sample(seen: Observation) -> ProcessSample | None:
    return seen if isinstance(seen, ProcessSample) else None


def _device(seen: Observation) -> DeviceSeen | None:
    return seen if isinstance(seen, DeviceSeen) else None


def _heartbeat(seen: Observation) -> Heartbeat | None:
    return seen if isinstance(seen, Heartbeat) else None
