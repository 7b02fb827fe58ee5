"""Evidence of a running job, made by hand: one call a rank says where it stands."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from pardbg.watchdog.judge.judge import Circumstances, judge
from pardbg.watchdog.model.evidence import (
    Absence,
    Evidence,
    Handler,
    JobDescription,
    LogTraceback,
    RankDescription,
    SourceContext,
    Stack,
    StackFrame,
    Thread,
)
from pardbg.watchdog.model.names import AbsenceReason, CollectorName, JobSource
from pardbg.watchdog.model.process import ProcessSample
from pardbg.watchdog.model.report import Report
from pardbg.watchdog.store.view import EvidenceView

WHEN = "2026-11-29T20:00:00.000Z"
TRAIN = "/home/mia/train.py"
C10D = "/opt/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py"
LOOP = SourceContext(loops=((30, 60),))


def frame(
    name: str,
    line: int,
    filename: str = TRAIN,
    *,
    source: SourceContext | None = None,
    locals_: dict[str, str] | None = None,
) -> StackFrame:
    """A frame of the training code, or of another file."""
    return StackFrame(name=name, filename=filename, line=line, locals=locals_ or {}, source=source)


MAIN = frame("main", 100, source=SourceContext())
IN_LOOP = (frame("train", 40, source=LOOP), MAIN)


@dataclass(frozen=True)
class Seen:
    """One look at one rank."""

    frames: tuple[StackFrame, ...]
    state: str = "S"
    system_call: str | None = "futex"
    blocked_on: str | None = None
    is_store: bool = False
    switches: int = 10
    moved_bytes: int = 1000
    still_s: float = 300.0
    owns_gil: bool = False
    uses_device: bool = False

    def stack(self, sample: int) -> Stack:
        """The stack of it."""
        main = Thread(name="MainThread", is_active=self.system_call == "running", owns_gil=self.owns_gil, frames=self.frames)
        return Stack(pid=1, threads=(main,), sample=sample)

    def process(self, sample: int, rank: int) -> ProcessSample:
        """The process of it."""
        return ProcessSample(
            sample=sample,
            pid=1000 + rank,
            started_ticks=1,
            state=self.state,
            system_call=self.system_call,
            blocked_on=self.blocked_on,
            is_store=self.is_store,
            voluntary_switches=self.switches,
            moved_bytes=self.moved_bytes,
            still_s=self.still_s,
            uses_device=self.uses_device,
        )


def waits(op: str = "all_reduce", locals_: dict[str, str] | None = None, *, around: tuple[StackFrame, ...] = IN_LOOP) -> Seen:
    """A rank that waits in a collective; of the world unless the locals say otherwise."""
    return Seen((frame(op, 3252, C10D, locals_=locals_ or {"is_default_group": "True"}), *around))


def receives(src: int, *, around: tuple[StackFrame, ...] = IN_LOOP) -> Seen:
    """A rank that waits for a message."""
    return Seen((frame("recv", 2799, C10D, locals_={"src": str(src), "group": "None"}), *around))


def sleeps(*around: StackFrame) -> Seen:
    """A rank on the host."""
    return Seen(around or (frame("load_batch", 12), *IN_LOOP), system_call="clock_nanosleep")


def subgroup(size: int, rank: int, desc: str) -> dict[str, str]:
    """What a frame tells of a smaller group."""
    return {"group_size": str(size), "group_rank": str(rank), "group_desc": desc, "is_default_group": "False"}


def handled(clause: str, body: tuple[int, int]) -> SourceContext:
    """A line in an exception handler."""
    return SourceContext(handlers=(Handler(clause=clause, body=body),))


@dataclass(frozen=True)
class LiveJob:
    """Two samples of every rank. ``later`` holds what differs in the second one."""

    seen: dict[int, Seen]
    later: dict[int, Seen] = field(default_factory=dict)
    ended: dict[int, int | None] = field(default_factory=dict)
    exceptions: dict[int, str] = field(default_factory=dict)
    is_recorder_off: bool = False
    world_size: int | None = None

    def evidence(self) -> Iterable[Evidence]:
        """As a scan gives it."""
        yield Evidence(source=CollectorName.HOST, rank=None, observation=self._description(), origin="/proc")
        reason = AbsenceReason.SWITCHED_OFF if self.is_recorder_off else AbsenceReason.UNREACHABLE
        for rank, first in self.seen.items():
            absence = Absence(reason=reason, detail="no way to it")
            yield Evidence(source=CollectorName.FLIGHT_RECORDER, rank=rank, observation=absence, origin="/proc")
            for sample, seen in enumerate((first, self.later.get(rank, first))):
                stack, process = seen.stack(sample), seen.process(sample, rank)
                yield Evidence(source=CollectorName.STACKS, rank=rank, observation=stack, origin="py-spy")
                yield Evidence(source=CollectorName.HOST, rank=rank, observation=process, origin="/proc")
        for rank, exception in self.exceptions.items():
            found = LogTraceback(exception=exception, where=None)
            yield Evidence(source=CollectorName.RANK_LOG, rank=rank, observation=found, origin="log")

    def _description(self) -> JobDescription:
        living = [RankDescription(rank=rank, pid=1000 + rank, state=seen.state) for rank, seen in self.seen.items()]
        gone = [RankDescription(rank=rank, state="gone", exit_code=code) for rank, code in self.ended.items()]
        size = self.world_size or len(self.seen) + len(self.ended)
        return JobDescription(job="j", world_size=size, ranks=(*living, *gone), sampled_at=WHEN)

    def report(self) -> Report:
        """The judge's answer."""
        circumstances = Circumstances(decided_at=WHEN, source=JobSource.TORCHRUN, sampled_at=(WHEN, WHEN))
        return judge(EvidenceView.of(self.evidence()), circumstances)


def job_of(*seen: Seen, **changes: object) -> LiveJob:
    """A job whose ranks stand where ``seen`` says, in order."""
    return replace(LiveJob(dict(enumerate(seen))), **changes)  # type: ignore[arg-type]  # the fields of LiveJob
