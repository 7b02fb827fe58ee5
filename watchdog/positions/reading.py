"""Reading one sample of one rank: is it waiting in communication, and if not, what holds it on the host?"""

from collections.abc import Sequence

from msgspec.structs import replace

from pardbg.watchdog.model.evidence import Stack, Thread
from pardbg.watchdog.model.names import Cause
from pardbg.watchdog.model.process import STOPPED_STATES, ProcessSample
from pardbg.watchdog.positions.communication import read_communication, waits_in_foreign, waits_in_native
from pardbg.watchdog.positions.position import Place, Position
from pardbg.watchdog.positions.rules import CauseRule, Sight, cause_rules, find_cause

RUNNING = "running"


def read_position(
    stack: Stack | None,
    process: ProcessSample | None = None,
    native: Stack | None = None,
    rules: Sequence[CauseRule] | None = None,
) -> Position | None:
    """Reads the main thread of a rank; None if nothing was seen that says anything.

    Args:
        stack: its Python stacks, if they were taken.
        process: its process at the same moment, if it was looked at.
        native: its stacks with native frames, if they were taken.
        rules: the table of causes; the shipped one by default.
    """
    thread = stack.main_thread if stack is not None else None
    frames = thread.frames if thread is not None else ()
    if not frames and process is None:
        return None
    own = [index for index, frame in enumerate(frames) if frame.is_own]
    native_thread = native.main_thread if native is not None else None
    sight = Sight(
        frames=frames,
        depth=own[0] + 1 if own else len(frames),
        process=process,
        holds_gil=stack is not None and _is_gil_held(stack),
        owns_gil=thread.owns_gil if stack is not None and stack.tells_lock and thread is not None and frames else None,
        native=native_thread.frames if native_thread is not None else (),
    )
    is_stopped = process is not None and process.state in STOPPED_STATES  # then it waits for nothing but to be resumed
    found = None if is_stopped else read_communication(frames, process) or _read_native_wait(sight)
    table = cause_rules() if rules is None else rules
    if found is not None and found.place is Place.DEVICE:
        return _read_timing(found, sight, table)
    held_by = _name_gil_holder(stack, thread) if sight.holds_gil else ""
    return found or _read_host(sight, table, held_by or _name_hold(process))


def _read_native_wait(sight: Sight) -> Position | None:
    """A wait that Python's frames do not show and the native ones do: ``work.wait()`` where no source could be read."""
    frame = sight.own_frame or next(iter(sight.frames), None)
    if waits_in_foreign(sight.native):
        return Position(place=Place.FOREIGN, frame=frame)
    return Position(place=Place.COLLECTIVE, frame=frame) if waits_in_native(sight.native) else None


def _read_timing(position: Position, sight: Sight, rules: Sequence[CauseRule]) -> Position:
    """A wait for the device, and whether it is one of somebody who times kernels, to choose among them."""
    found = find_cause(sight, [rule for rule in rules if rule.uses_kernels])
    return position if found is None else replace(position, cause=found[0].cause, rule=found[0], frame=found[1])


def _read_host(sight: Sight, rules: Sequence[CauseRule], held_by: str) -> Position | None:
    found = find_cause(sight, rules)
    if found is not None:
        rule, frame = found
        return Position(place=Place.HOST, frame=frame, cause=rule.cause, rule=rule, held_by=held_by)
    if not sight.frames:
        return None
    own = sight.own_frame
    cause = Cause.USER_CODE if own is not None and own.is_own else None
    return Position(place=Place.HOST, frame=own or sight.frames[0], cause=cause, held_by=held_by)


def _name_hold(process: ProcessSample | None) -> str:
    """The system call and what it waits for: ``read of pipe``."""
    if process is None or process.system_call in {None, RUNNING} or process.state in STOPPED_STATES:
        return ""
    return f"{process.system_call} of {process.blocked_on}" if process.blocked_on else process.system_call or ""


def _is_gil_held(stack: Stack) -> bool:
    """Whether a thread holds the interpreter lock and yet does not run: whatever it is in does not let others in."""
    return stack.is_lock_held or any(thread.owns_gil and not thread.is_active for thread in stack.threads)


def _name_gil_holder(stack: Stack | None, main: Thread | None) -> str:
    """Which thread holds the interpreter lock, and where; empty if it is the main one, whose frames are told anyway."""
    holder = next((thread for thread in stack.threads if thread.owns_gil), None) if stack is not None else None
    if holder is None or holder is main:
        return ""
    where = f", at {holder.frames[0].short}" if holder.frames else ""
    return f"held by thread {holder.name}{where}"
