"""Has a living rank left what the others are still in: the training loop, or by an exception the whole of it?

The stacks of waiting ranks say where training happens. The innermost function that a rank shares with them is where its way
parted from theirs; what the source says of the two lines there decides. Without sources the rank's own recorded call sites
have to do: it has left when its stack no longer holds the function with the loop from which it issued its last collectives.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import Enum, auto

from pardbg.watchdog.graph.log_facts import Failure
from pardbg.watchdog.graph.standing import Stance, Standing
from pardbg.watchdog.model.evidence import StackFrame
from pardbg.watchdog.model.issuing import loop_function
from pardbg.watchdog.model.recording import Recording
from pardbg.watchdog.model.short_names import holds_function

MAX_WITNESSES = 8
_CUT_DEPTH = 100


class Departure(Enum):
    """How a rank has left."""

    LEFT_LOOP = auto()  # it went on behind the loop
    EXCEPT = auto()  # it is in an `except` clause of the `try` the others are still in
    FINALLY = auto()  # in a `finally` clause of it


def find_departure(frames: Sequence[StackFrame], witnesses: Iterable[Sequence[StackFrame]]) -> Departure | None:
    """How a rank has left the loop the witnesses are in, if most of those that can tell agree on it.

    Args:
        frames: its main thread, innermost first.
        witnesses: the main threads of ranks that wait in communication.
    """
    answers = [_compare(frames, witness) for _, witness in zip(range(MAX_WITNESSES), witnesses, strict=False)]
    if not answers:
        return None
    answer, count = Counter(answers).most_common(1)[0]
    return answer if count * 2 > len(answers) else None


def left_recorded_loop(frames: Sequence[StackFrame], recording: Recording) -> bool:
    """Whether the stack no longer holds the loop from which the rank issued its last collectives (contract, rule 8)."""
    home = loop_function(recording)
    return home is not None and not holds_function({frame.function for frame in frames}, home)


def is_at_exit(frames: Sequence[StackFrame]) -> bool:
    """Whether a main thread is past its program: Python calls what is registered for the exit from no frame of the program.

    faulthandler cuts deep stacks at the outer end, which looks alike.
    """
    is_program = any(frame.name == "<module>" for frame in frames)
    return 0 < len(frames) < _CUT_DEPTH and not is_program and frames[-1].is_library


def has_ended(failure: Failure, standing: Standing, frames: Sequence[StackFrame]) -> bool:
    """Whether an exception of its own has ended all of a living rank's program.

    It is at its exit; or torch's hook wrote that nothing caught it, nothing is outstanding, and no stack says otherwise.
    """
    if standing.position is None:
        return failure.is_uncaught and standing.stance is Stance.IDLE
    return standing.stance is Stance.HOST and is_at_exit(frames)


def _compare(frames: Sequence[StackFrame], witness: Sequence[StackFrame]) -> Departure | None:
    here, there = _own_outermost_first(frames), _own_outermost_first(witness)
    shared = 0
    while shared < min(len(here), len(there)) and here[shared].function == there[shared].function:
        shared += 1
    for mine, other in zip(here[:shared], there[:shared], strict=True):
        for handler in mine.source.handlers if mine.source is not None else ():
            loops = mine.source.loops if mine.source is not None else ()
            if any(first <= other.line <= last for first, last in loops):
                continue  # the next turn of the loop takes it back to the others
            if handler.body[0] <= other.line <= handler.body[1]:
                return Departure.EXCEPT if handler.clause.startswith("except") else Departure.FINALLY
    if not shared:
        return None
    mine, other = here[shared - 1], there[shared - 1]
    if mine.source is None or other.source is None or mine.line <= other.line:
        return None
    if other.source.loops:
        return Departure.LEFT_LOOP if mine.line > other.source.loops[0][1] else None
    is_looping = any(frame.source is not None and frame.source.loops for frame in there[shared:])
    return Departure.LEFT_LOOP if is_looping else None


def _own_outermost_first(frames: Sequence[StackFrame]) -> list[StackFrame]:
    return [frame for frame in reversed(frames) if frame.is_own]
