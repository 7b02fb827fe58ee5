"""Does anything move? What counts as a sign of life, and what does not.

"Hung" needs two samples. Between them a job lives if a rank has finished an operation, if a waiting rank has finished a step or
waits elsewhere than before, or if the main thread of a waiting rank has been awake (a wait in gloo sleeps through; on a device
the host thread may wake to poll, so there it says nothing). Processor time is no sign of life: an endless loop burns as much as
a healthy step. The rank that the others wait for lives if it finishes a step, if it or its children read or write, or if its
compilers work: its steps are no sign for those who wait for it.
"""

from collections import Counter
from collections.abc import Collection, Iterator
from itertools import pairwise

from pardbg.watchdog.graph.standing import Stance, Standing
from pardbg.watchdog.model.names import Cause
from pardbg.watchdog.model.process import ProcessSample
from pardbg.watchdog.model.recording import Operation, Recording
from pardbg.watchdog.model.summary import KEPT_OPEN
from pardbg.watchdog.positions.position import Place
from pardbg.watchdog.store.view import EvidenceView

LEAST_BYTES = 64 * 1024
LEAST_CHILD_CPU_S = 0.2
LEAST_CPU_S = 0.1
WAITING = frozenset({Place.COLLECTIVE, Place.P2P, Place.DEVICE, Place.FOREIGN})


def job_motion(view: EvidenceView, standings: dict[int, Standing]) -> str:
    """What shows that the job moves, in words; empty if nothing does or there is only one sample."""
    if any(_finished(before, after) for samples in view.samples.values() for before, after in pairwise(samples)):
        return "operations were completed between the samples"
    for rank, standing in standings.items():
        places = {position.place for position in standing.positions}
        is_waiting = bool(standing.fronts) or bool(WAITING & places)
        if is_waiting and _finished_steps(view, rank):
            return f"rank {rank} has finished a step between the samples"
        if all(position.is_polling for position in standing.positions):
            continue
        if len(standing.positions) < 2 or not (WAITING & places or standing.stance is Stance.UNSEEN):
            continue
        if _main_frames(view, rank, 0) != _main_frames(view, rank, -1):
            return f"rank {rank} is elsewhere than before"
        before, after = view.looks.get(rank, (None,))[0], view.looks.get(rank, (None,))[-1]
        if before is None or after is None or before.uses_device:
            continue
        if (after.voluntary_switches or 0) > (before.voluntary_switches or 0):
            return f"rank {rank} was awake between the samples"
    return ""


def is_astir(view: EvidenceView) -> bool:
    """Whether any rank did anything between its first look and its last: then a job in which nobody waits is alive."""
    for rank, looks in view.looks.items():
        before, after = looks[0], looks[-1]
        is_elsewhere = _main_frames(view, rank, 0) != _main_frames(view, rank, -1)
        was_awake = (after.voluntary_switches or 0) != (before.voluntary_switches or 0)
        has_worked = (after.cpu_s or 0.0) - (before.cpu_s or 0.0) >= LEAST_CPU_S
        if is_elsewhere or was_awake or has_worked or (after.moved_bytes or 0) - (before.moved_bytes or 0) >= LEAST_BYTES:
            return True
    return any(_finished_steps(view, rank) for rank in view.all_heartbeats)


def host_motion(view: EvidenceView, rank: int, cause: Cause | None) -> str:
    """What shows that a rank on the host gets on with it, in words; empty if nothing does or there is only one look."""
    if _finished_steps(view, rank):
        return "it has finished a step between the samples"
    looks = view.looks.get(rank, ())
    if len(looks) < 2:
        return ""
    before, after = looks[0], looks[-1]
    if before.moved_bytes is not None and after.moved_bytes is not None:
        moved = after.moved_bytes - before.moved_bytes
        if moved >= LEAST_BYTES:
            return f"it has read or written {_megabytes(moved)} between the samples"
    if cause is Cause.COMPILE and _children_cpu_s(after) - _children_cpu_s(before) >= LEAST_CHILD_CPU_S:
        return "its compilers are at work"
    return ""


def oldest_wait_s(view: EvidenceView, standings: dict[int, Standing], among: Collection[int] | None = None) -> float | None:
    """For how long the longest waiting main thread (of these ranks, if given) has not run, seconds; None if none tells."""
    return max(_waits_s(view, standings, among), default=None)


def youngest_wait_s(view: EvidenceView, standings: dict[int, Standing]) -> float | None:
    """The same of the shortest."""
    return min(_waits_s(view, standings, None), default=None)


def _waits_s(view: EvidenceView, standings: dict[int, Standing], among: Collection[int] | None) -> list[float]:
    return [
        looks[-1].still_s
        for rank, looks in view.looks.items()
        if looks[-1].still_s is not None
        and _waits(standings.get(rank))
        and not looks[-1].uses_device
        and (among is None or rank in among)
    ]


def _waits(standing: Standing | None) -> bool:
    return standing is not None and standing.position is not None and standing.position.place in WAITING


def _main_frames(view: EvidenceView, rank: int, sample: int) -> tuple[tuple[str, str, int], ...]:
    stacks = view.stacks.get(rank, ())
    thread = stacks[sample].main_thread if stacks else None
    return tuple((frame.filename, frame.name, frame.line) for frame in thread.frames) if thread else ()


def _finished_steps(view: EvidenceView, rank: int) -> int:
    """How many steps a rank has finished between its first heartbeat and its last; 0 where nobody knows."""
    beats = view.all_heartbeats.get(rank, ())
    steps = [beat.step for beat in beats if beat.step is not None]
    return steps[-1] - steps[0] if len(steps) > 1 else 0


def _children_cpu_s(look: ProcessSample) -> float:
    return sum(child.cpu_s or 0.0 for child in look.children)


def _megabytes(count: int) -> str:
    return f"{count / 1e6:.1f} MB"


def _finished(before: Recording, after: Recording) -> bool:
    """Whether something outstanding before is finished after; overwritten or filtered out counts as finished."""
    outstanding = [operation for operation in before.operations if not operation.is_done]
    if not outstanding:
        return False
    still_open = {operation.record_id for operation in after.operations if not operation.is_done}
    gone = [operation for operation in outstanding if operation.record_id not in still_open]
    if not gone or after.summary is None:
        return bool(gone)
    oldest = {after.groups[operation.group].name: operation.record_id for operation in _open_backwards(after)}
    counts = Counter(after.groups[operation.group].name for operation in _open_backwards(after))
    names = (before.groups[operation.group].name for operation in gone)
    return any(
        counts[name] < KEPT_OPEN or operation.record_id < oldest[name] for operation, name in zip(gone, names, strict=True)
    )  # of a long queue a digest leaves out the middle


def _open_backwards(recording: Recording) -> Iterator[Operation]:
    return (operation for operation in reversed(recording.operations) if not operation.is_done)
