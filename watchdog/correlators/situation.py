"""The situation of a job: everything derived from its evidence once, for all correlators to read."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pardbg.watchdog.graph.axes import PIPELINE, axis_of, coordinates
from pardbg.watchdog.graph.departures import Departure, find_departure, has_ended, is_at_exit, left_recorded_loop
from pardbg.watchdog.graph.device_blame import DeviceBlame, DeviceBlamer
from pardbg.watchdog.graph.divergence import DivergenceFound, find_divergence
from pardbg.watchdog.graph.fronts import LOST, find_fronts
from pardbg.watchdog.graph.gatherings import Gathering, find_gatherings
from pardbg.watchdog.graph.groups import Group, Groups, find_groups
from pardbg.watchdog.graph.keys import FROM_STACKS, UNKNOWN_PEER, MeetingKey
from pardbg.watchdog.graph.log_facts import Failure, LogFacts, doubtful_failures, own_failures
from pardbg.watchdog.graph.log_groups import with_group_names
from pardbg.watchdog.graph.log_waits import waits_of
from pardbg.watchdog.graph.meetings import Meeting, Room
from pardbg.watchdog.graph.motion import host_motion, job_motion
from pardbg.watchdog.graph.progress import Progress, trace_progress
from pardbg.watchdog.graph.rounds import Rounds, find_rounds
from pardbg.watchdog.graph.slow_signs import SlowSign, find_slow_signs
from pardbg.watchdog.graph.standing import Stance, Standing, find_standings
from pardbg.watchdog.graph.waits import WaitGraph, explore
from pardbg.watchdog.graph.what_if import WhatIf
from pardbg.watchdog.model.device import DeviceJoin
from pardbg.watchdog.model.evidence import StackFrame
from pardbg.watchdog.model.garbage import without_garbage_collection
from pardbg.watchdog.model.log_event import CollectiveTimeout, GroupName
from pardbg.watchdog.model.moments import parse_rfc3339
from pardbg.watchdog.model.names import Cause, Scope
from pardbg.watchdog.model.operations import DEVICE_BACKENDS
from pardbg.watchdog.model.reach import NO_WAY, Reach
from pardbg.watchdog.model.recording import Operation, Recording
from pardbg.watchdog.model.report import CollectiveRef, Device, GroupRef, Subject
from pardbg.watchdog.model.routing import RoutingSeries
from pardbg.watchdog.positions.rules import CauseRule, cause_rules
from pardbg.watchdog.routing.merging import merge
from pardbg.watchdog.routing.model_watch import RoutingWatch
from pardbg.watchdog.store.view import EvidenceView

NS_PER_S = 1_000_000_000
LOOSE_CAUSES = frozenset({Cause.SLEEPING, Cause.USER_CODE, Cause.LOCK, Cause.STORE_WAIT})
UNEXPLAINED_CAUSES = frozenset({Cause.USER_CODE, Cause.BUSY_LOOP, None})
"""Where a better reason is welcome."""
PHASE_CAUSES = {"compile": Cause.COMPILE, "checkpoint": Cause.CHECKPOINT_IO}
LEAVING = re.compile(r"^(_run_exitfuncs|_exit_function|destroy_process_group|_shutdown)$")


@dataclass(frozen=True)
class Situation:
    """A job at one moment. ``graph`` says who waits for whom; the rest is what it was made from.

    ``reach``: how the reader of a finding gets to the hosts.
    """

    view: EvidenceView
    groups: Groups
    progress: Progress
    standings: dict[int, Standing]
    graph: WaitGraph
    reach: Reach = NO_WAY

    @classmethod
    @without_garbage_collection()
    def of(cls, view: EvidenceView, rules: Sequence[CauseRule] | None = None, reach: Reach = NO_WAY) -> "Situation":
        """Derives the situation from the evidence, with the given table of causes. Linear in operations and ranks."""
        progress = trace_progress(view, find_groups(view))
        standings = find_standings(view, find_fronts(progress), cause_rules() if rules is None else rules, progress.behind)
        groups, gatherings = find_gatherings(standings, progress.groups, view.world_size)
        progress = replace(progress, groups=groups)
        return cls(view, groups, progress, standings, explore(Room(progress, standings, {}, gatherings)), reach)

    @cached_property
    def routing(self) -> RoutingSeries:
        """How tokens were routed in the whole job; without rows where nothing was counted."""
        return merge(self.view.routing)

    @cached_property
    def routing_watch(self) -> RoutingWatch:
        """What is ill in it. Cost: that of feeding every row once."""
        watch = RoutingWatch()
        watch.feed(self.routing.rows, self.routing.names, self.routing.frozen, self.routing.settled)
        return watch

    @cached_property
    def rounds(self) -> tuple[Rounds, ...]:
        """How late each rank came to the collectives that were recorded."""
        return find_rounds(self.view, self.groups)

    @cached_property
    def slow_signs(self) -> dict[int, SlowSign]:
        """What makes a rank slow that others are not, by rank."""
        return find_slow_signs(self.view, self.logs)

    @cached_property
    def what_ifs(self) -> tuple[WhatIf, ...]:
        """What traced steps say: how fast they could be. Cost: seconds for a trace of 100,000 operations."""
        return tuple(filter(None, map(WhatIf.of, self.view.traces.steps)))

    @cached_property
    def logs(self) -> LogFacts:
        """What the ranks' logs tell beyond tracebacks."""
        return with_group_names(LogFacts.of(self.view))

    @cached_property
    def own_failures(self) -> dict[int, Failure]:
        """The first error of its own of each rank whose log tells of one."""
        return own_failures(self.view, self.logs)

    @cached_property
    def doubtful_failures(self) -> dict[int, Failure]:
        """Exceptions that may be a rank's own, or what others did to it."""
        return doubtful_failures(self.view, self.logs)

    @cached_property
    def log_waits(self) -> dict[GroupName, dict[int, CollectiveTimeout]]:
        """The first wait that each rank gave up by its log, by group."""
        return waits_of(self.logs)

    @cached_property
    def divergences(self) -> tuple[DivergenceFound, ...]:
        """The earliest divergence of every group that is concerned."""
        found = (find_divergence(self.progress, self.groups.groups[index]) for index in self.concerned_groups)
        return tuple(divergence for divergence in found if divergence is not None)

    @cached_property
    def concerned_groups(self) -> tuple[int, ...]:
        """The groups in which somebody waits - or which cannot have survived a divergence (gloo)."""
        concerned = {key.group for key in self.graph.meetings if not key.is_p2p and not key.is_gathering}
        on_host = frozenset(rank for rank in self.view.recordings if not self.is_on_device(rank))
        concerned.update(
            group
            for (rank, group), lane in (self.progress.lanes.items() if on_host else ())
            if lane.collectives and rank in on_host
        )
        return tuple(sorted(concerned))

    @cached_property
    def waiting_ranks(self) -> tuple[int, ...]:
        """All ranks with an operation outstanding, or waiting in one by their own stacks."""
        return tuple(
            rank
            for rank, standing in self.standings.items()
            if standing.fronts or self.graph.room.keys(rank) or standing.is_foreign
        )

    @property
    def is_stuck(self) -> bool:
        """Whether ranks wait, and nothing shows that the job moves."""
        return bool(self.waiting_ranks) and not self.motion

    @cached_property
    def ranks_by_host(self) -> dict[str, tuple[int, ...]]:
        """The ranks of each host that is known."""
        found: dict[str, list[int]] = {}
        for rank in self.standings:
            if (host := self.view.host(rank)) is not None:
                found.setdefault(host, []).append(rank)
        return {host: tuple(ranks) for host, ranks in found.items()}

    @cached_property
    def ranks_by_stage(self) -> dict[int, tuple[int, ...]]:
        """The ranks of each pipeline stage, where groups tell them."""
        found: dict[int, list[int]] = {}
        for rank in self.standings:
            if (stage := self._coords.get(rank, {}).get(PIPELINE)) is not None:
                found.setdefault(stage, []).append(rank)
        return {stage: tuple(ranks) for stage, ranks in found.items()}

    @cached_property
    def is_over(self) -> bool:
        """Whether the job has ended: every rank of which anything is known has."""
        ended, processes = self.view.ended_ranks, self.view.processes
        unseen = (rank for rank in self.standings if rank not in ended)
        return bool(ended) and all(
            self.stance(rank) is Stance.UNSEEN and not (rank in processes and processes[rank].state) for rank in unseen
        )

    def stance(self, rank: int) -> Stance:
        """What a rank is doing."""
        return self.standings[rank].stance

    def is_on_device(self, rank: int) -> bool:
        """Whether this rank's operations run on an accelerator."""
        recording = self.view.recordings.get(rank)
        return recording is not None and any(signature.backend in DEVICE_BACKENDS for signature in recording.signatures)

    @cached_property
    def is_on_accelerator(self) -> bool:
        """Whether any rank has an accelerator open or recorded operations of one."""
        return any(self.is_on_device(rank) for rank in self.view.recordings) or any(
            look.uses_device for looks in self.view.looks.values() for look in looks
        )

    @cached_property
    def device_blames(self) -> dict[int, DeviceBlame]:
        """The ranks whose GPUs explain why others wait."""
        return self.device_blamer.find()

    @property
    def device_blamer(self) -> DeviceBlamer:
        """What their GPUs say of ranks that wait."""
        return DeviceBlamer(self.view, self.graph, self.seconds_since, self.waiting_s, self.waiting_since_ns)

    def is_blamed_on_device(self, meeting: Meeting) -> bool:
        """Whether the GPU of a rank explains why a meeting stands still."""
        return any(blame.meeting.key == meeting.key for blame in self.device_blames.values())

    @cached_property
    def motion(self) -> str:
        """What shows that the job moves; empty if nothing does."""
        return job_motion(self.view, self.standings)

    def host_motion(self, rank: int) -> str:
        """What shows that a rank on the host gets on with it; empty if nothing does."""
        return host_motion(self.view, rank, self.host_cause(rank))

    def host_cause(self, rank: int) -> Cause | None:
        """What holds a rank on the host: as its stack and process show, else as its own probe says."""
        position = self.standings[rank].position
        cause = position.cause if position else None
        return (self.phase_cause(rank) or cause) if cause in UNEXPLAINED_CAUSES else cause

    def phase_cause(self, rank: int) -> Cause | None:
        """What the phase means that a rank is in by its probe, if that is one that can hold a rank up."""
        beat = self.view.heartbeats.get(rank)
        return PHASE_CAUSES.get(beat.phase) if beat is not None else None

    def main_frames(self, rank: int) -> tuple[StackFrame, ...]:
        """The newest stack of a rank's main thread, innermost first; empty if there is none."""
        stacks = self.view.stacks.get(rank)
        thread = stacks[-1].main_thread if stacks else None
        return thread.frames if thread else ()

    def own_frame(self, rank: int) -> StackFrame | None:
        """The innermost frame of the training code."""
        return next((frame for frame in self.main_frames(rank) if frame.is_own), None)

    def departure(self, rank: int) -> Departure | None:
        """Whether and how a living rank has left what the others are still in."""
        frames = self.main_frames(rank)
        recording = self.view.recordings.get(rank)
        if any(frame.source is not None for frame in frames):
            waiting = (other for other in self.waiting_ranks if other != rank and self.main_frames(other))
            return find_departure(frames, map(self.main_frames, waiting))
        position = self.standings[rank].position
        is_loose = position is not None and (not position.is_definite or position.cause in LOOSE_CAUSES)
        left = is_loose and recording is not None and left_recorded_loop(frames, recording)
        return Departure.LEFT_LOOP if left or is_at_exit(frames) else None

    def is_unwound(self, rank: int) -> bool:
        """Whether an exception has taken a living rank out of what the others are still in."""
        failure = self.own_failures.get(rank) if rank in self.view.tracebacks and not self.view.ended_ranks else None
        if failure is not None and has_ended(failure, self.standings[rank], self.main_frames(rank)):
            return True
        if self.stance(rank) is not Stance.HOST:
            return False
        departure = self.departure(rank)
        if departure is Departure.EXCEPT:
            return True
        is_leaving = any(LEAVING.match(frame.bare_name) for frame in self.main_frames(rank))
        return rank in self.view.tracebacks and (departure is not None or is_leaving)

    def subject(self, rank: int, why: str) -> Subject:
        """Names a rank, with its host, process and place in the layout."""
        process = self.view.processes.get(rank)
        return Subject(
            scope=Scope.RANK,
            rank=rank,
            ranks=(rank,),
            host=self.view.host(rank),
            pid=process.pid if process else None,
            device=self._device(rank),
            coords=self._coords.get(rank, {}),
            why=why,
        )

    def _device(self, rank: int) -> Device | None:
        seen, process = self.view.devices.get(rank), self.view.processes.get(rank)
        if seen is not None and (seen.uuid is not None or seen.index is not None):
            is_guess = seen.joined_by is DeviceJoin.LOCAL_RANK
            return None if is_guess else Device(index=seen.index, uuid=seen.uuid, pci_bus_id=seen.pci_bus_id)
        is_known = process is not None and (process.gpu_uuid or process.pci_bus_id)
        return Device(uuid=process.gpu_uuid, pci_bus_id=process.pci_bus_id) if process and is_known else None

    def group_ref(self, group: Group) -> GroupRef:
        """A group as reports name it."""
        return GroupRef(name=group.name, desc=group.desc, axis=axis_of(group), ranks=group.ranks)

    def meeting_group(self, key: MeetingKey) -> GroupRef | None:
        """The group of a meeting; None where only a stack shows it and the members do not follow."""
        gathering = self.gathering(key)
        if key.group == FROM_STACKS or (gathering is not None and not gathering.has_members):
            return None
        return self.group_ref(self.groups.groups[key.group])

    def gathering(self, key: MeetingKey) -> Gathering | None:
        """What stacks tell of a meeting; None if recordings do."""
        return self.graph.room.gatherings.by_key.get(key)

    def has_members(self, meeting: Meeting) -> bool:
        """Whether it is known beyond doubt who has to come to a meeting."""
        gathering = self.gathering(meeting.key)
        return gathering is None or (gathering.has_members and not gathering.is_inferred)

    def may_be_complete(self, meeting: Meeting) -> bool:
        """Whether all may be there already, as far as it is known who they are."""
        gathering = self.gathering(meeting.key)
        return gathering is not None and gathering.may_be_complete

    def is_seen(self, rank: int) -> bool:
        """Whether it is known what this rank does."""
        return self.standings[rank].is_recorded or self.standings[rank].stance is not Stance.UNSEEN

    def collective_ref(self, meeting: Meeting) -> CollectiveRef:
        """The operation of a meeting, as its first member issued it."""
        key = meeting.key
        found = self.operation_at(meeting)
        ends = {"src": _known(key.src), "dst": _known(key.dst)}
        gathering = self.gathering(key)
        if gathering is not None:
            src = _known(UNKNOWN_PEER if gathering.source is None else gathering.source)
            return CollectiveRef(op=gathering.op or "unknown", seq=None, sizes=(), dtype=None, src=src, dst=None)
        if found is None:
            return CollectiveRef(op="send" if key.is_p2p else "unknown", seq=key.seq, sizes=(), dtype=None, **ends)
        recording, operation = found
        signature = recording.signatures[operation.signature]
        dtype = next(iter(signature.input_dtypes), None)
        return CollectiveRef(op=signature.op, seq=key.seq, sizes=signature.input_sizes, dtype=dtype, **ends)

    def operation_at(self, meeting: Meeting) -> tuple[Recording, Operation] | None:
        """The recorded operation that the first waiting member of a meeting stands at."""
        for rank in meeting.entered or meeting.completed:
            for front in self.standings[rank].fronts:
                if front.operation.record_id != LOST and meeting.key in self.graph.room.front_keys(front):
                    return self.view.recordings[rank], front.operation
        return None

    def waiting_since_ns(self, meeting: Meeting) -> int | None:
        """When the first member entered the meeting, epoch ns."""
        times = [
            front.operation.created_ns
            for rank in meeting.entered
            for front in self.standings[rank].fronts
            if front.operation.created_ns and meeting.key in self.graph.room.front_keys(front)
        ]
        return min(times, default=None)

    def waiting_s(self, meeting: Meeting) -> float | None:
        """How long the meeting has waited, if it is known when the evidence was taken, or the processes tell."""
        recorded = self.seconds_since(self.waiting_since_ns(meeting))
        if recorded is not None:
            return recorded
        still = [seconds for rank in meeting.entered if (seconds := self.still_s(rank)) is not None]
        return max(still, default=None)

    def still_s(self, rank: int) -> float | None:
        """For how long the main thread of a rank has not run."""
        looks = self.view.looks.get(rank)
        return looks[-1].still_s if looks else None

    def seconds_since(self, since_ns: int | None) -> float | None:
        """Seconds from a moment (epoch ns) to the moment the evidence was taken, if both are known."""
        sampled_at = self.view.job.sampled_at
        if since_ns is None or sampled_at is None:
            return None
        try:
            sampled_s = parse_rfc3339(sampled_at).timestamp()
        except ValueError:
            return None
        return max(round(sampled_s - since_ns / NS_PER_S, 1), 0.0)

    @cached_property
    def _coords(self) -> dict[int, dict[str, int]]:
        return coordinates(self.groups)


def _known(rank: int) -> int | None:
    return None if rank == UNKNOWN_PEER else rank


def is_setting_up(situation: Situation, meeting: Meeting) -> bool:
    """Whether the ranks of a meeting are still creating the job's first group."""
    return meeting.key.is_gathering and situation.collective_ref(meeting).op == "init_process_group"


def before_first_operation(situation: Situation, ranks: Iterable[int]) -> bool:
    """Whether none of these ranks has completed anything in any group yet, as far as they recorded anything at all."""
    seen = [situation.view.recordings[rank] for rank in ranks if rank in situation.view.recordings]
    return bool(seen) and not any(
        any(operation.is_done for operation in recording.operations)
        or any(counter.last_completed > 0 for counter in recording.progress)
        for recording in seen
    )
