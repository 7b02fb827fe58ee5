"""A trace of torch.profiler (Chrome's format, written by Kineto): how long a rank's GPU computed and communicated in each step.

Kernels of NCCL spin while they wait for other ranks, so the time in them is mostly waiting. Steps are those that
``profiler.step()`` marks; without any, all is one. Cost: some 2 s for 100 MB; the values of arguments are skipped unread.
"""

import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from enum import Enum

import msgspec

from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.evidence import Absence
from pardbg.watchdog.model.members import MAX_WORLD_SIZE
from pardbg.watchdog.model.names import AbsenceReason
from pardbg.watchdog.model.step_trace import KernelTimes, StepTimes

MOST_STEPS = 4_096
_STEP = re.compile(r"ProfilerStep\s*#(\d{1,15})$")
_COMMUNICATES = re.compile(r"^(?:nccl|rccl|oneccl)", re.IGNORECASE)
_KERNEL, _COPY = frozenset({"kernel", "Kernel"}), frozenset({"gpu_memcpy", "Memcpy"})
_FROM_HOST, _LOADER = "Memcpy HtoD", "enumerate(DataLoader)"
_US_PER_S = 1e6
_NO_STEP = 0


class _Work(Enum):
    """What a step's time is spent with, in the order of `StepTimes`."""

    COMPUTE = 1
    COMMUNICATION = 2
    COPY = 3
    LOADING = 4


class _Event(msgspec.Struct, gc=False):
    """Times in microseconds, of one clock."""

    name: str = ""
    ph: str = ""
    cat: str = ""
    ts: float | str = 0.0
    dur: float | str = 0.0


class _Distributed(msgspec.Struct):
    rank: int | None = None


class _File(msgspec.Struct):
    events: list[_Event] = msgspec.field(name="traceEvents", default_factory=list)
    distributed: _Distributed | None = msgspec.field(name="distributedInfo", default=None)


_FILES = msgspec.json.Decoder(_File, strict=False)


def parse_kernel_times(data: bytes) -> tuple[int | None, KernelTimes | Absence]:
    """The rank that the trace names, if it does, and its steps; an absence if no kernel is in it.

    Raises:
        ParseError: if it is cut off, or its values are none of such a trace.
    """
    try:
        read = _FILES.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ParseError(f"not a whole trace: {error}", remedy="export it again with export_chrome_trace") from error
    rank = read.distributed.rank if read.distributed is not None else None
    if rank is not None and not 0 <= rank < MAX_WORLD_SIZE:
        raise ParseError(f"a trace of rank {rank}")
    timed = [event for event in read.events if event.ph == "X" and _is_timed(event)]
    kernels = [event for event in timed if event.cat in _KERNEL]
    if not kernels:
        what = "operations of the CPU" if timed else "metadata"
        detail = f"the trace holds {what} and no kernel of a GPU: nothing tells computing from communication"
        return rank, Absence(reason=AbsenceReason.EMPTY, detail=detail)
    return rank, KernelTimes(steps=_steps(timed, kernels))


def _is_timed(event: _Event) -> bool:
    times = (event.ts, event.dur)
    return all(isinstance(time, float) and math.isfinite(time) for time in times) and 0 <= float(event.dur) < 1e12


def _steps(timed: Iterable[_Event], kernels: Sequence[_Event]) -> tuple[StepTimes, ...]:
    marks = _marks(timed)
    if not marks:
        begin = min(float(event.ts) for event in kernels)
        marks = [(begin, max(float(event.ts) + float(event.dur) for event in kernels), _NO_STEP)]
    begins = [begin for begin, _, _ in marks]
    parts: list[dict[_Work, list[tuple[float, float]]]] = [{} for _ in marks]
    for event in timed:
        work, start = _work(event), float(event.ts)
        place = bisect_right(begins, start) - 1
        if work is not None and place >= 0 and start < marks[place][1]:
            parts[place].setdefault(work, []).append((start, start + float(event.dur)))
    return tuple(
        StepTimes(number, (end - begin) / _US_PER_S, *(_covered_s(part.get(work, [])) for work in _Work))
        for (begin, end, number), part in zip(marks, parts, strict=True)
        if _Work.COMPUTE in part or _Work.COMMUNICATION in part
    )


def _work(event: _Event) -> _Work | None:
    if event.cat in _KERNEL:
        return _Work.COMMUNICATION if _COMMUNICATES.match(event.name) else _Work.COMPUTE
    if event.cat in _COPY:
        return _Work.COPY if event.name.startswith(_FROM_HOST) else None
    return _Work.LOADING if event.name.startswith(_LOADER) else None


def _marks(timed: Iterable[_Event]) -> list[tuple[float, float, int]]:
    """Begin, end and number of each step, ascending; the newest. Where the GPU's differ from the CPU's, the CPU's."""
    seen: dict[bool, dict[int, tuple[float, float, int]]] = {True: {}, False: {}}
    for event in timed:
        match = _STEP.match(event.name)
        if match is not None:
            number, begin = int(match[1]), float(event.ts)
            seen[event.cat == "gpu_user_annotation"][number] = (begin, begin + float(event.dur), number)
    return sorted((seen[False] or seen[True]).values())[-MOST_STEPS:]


def _covered_s(spans: list[tuple[float, float]]) -> float:
    """How long any of them lasted: streams run beside each other."""
    covered, until = 0.0, -math.inf
    for begin, end in sorted(spans):
        covered += max(0.0, end - max(begin, until))
        until = max(until, end)
    return covered / _US_PER_S
