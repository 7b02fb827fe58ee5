"""Asks one rank for its own stacks where nobody may read its memory. Runs in a child that may be abandoned.

First its worker server (`dump_traceback`): that takes the interpreter lock for about 1 ms, so it answers for a rank that waits
in a collective, sleeps or computes without the lock. One that does not answer keeps the question until the lock comes free, so
it is asked once in a scan. Then, under its own guards, by the signal of the rank's probe (`stack_signal.py`). Cost to the rank:
about 1 ms of a server's thread and a temporary file, which torch removes. Deadline: `SERVER_S`, then `stack_signal.DEADLINE_S`.

While the question waits, the thread that has it wakes every 5 ms to ask for the lock: that shows that the lock is held, now.
"""

import os
import time

from msgspec.structs import replace

from pardbg.collectors.live.probe.place import folder_of_target, read_targets_words
from pardbg.collectors.live.probe.stack_signal import NotAskedError, ask_by_signal, server_switches
from pardbg.collectors.live.recorders.entering import entered
from pardbg.collectors.live.recorders.http_exchange import NoAnswerError, exchange
from pardbg.collectors.live.recorders.outcome import Refusal, StackAnswer
from pardbg.collectors.live.recorders.owner import living
from pardbg.collectors.live.recorders.request import Target
from pardbg.collectors.live.recorders.server_finding import find_server
from pardbg.collectors.live.recorders.trusted_file import RefusedError
from pardbg.collectors.parsing.fault_dump import find_fault_stack
from pardbg.collectors.probe.places import ASKED_STACKS
from pardbg.collectors.walking import printable
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.names import AbsenceReason
from pardbg.watchdog.model.process import STOPPED_STATES

SERVER_S = 1.0
_MUTE = "its worker server does not answer"
_HELD = "its worker server waits for the interpreter lock, which something holds"
BETWEEN_LOOKS_S = 0.05
LEAST_WAKES = 3
QUESTION = "/handler/dump_traceback"


def ask_stack(target: Target, *, is_mute: bool) -> StackAnswer:
    """The stacks of all threads of a rank, or why it gave none.

    Args:
        target: the rank.
        is_mute: its worker server has been asked before in this scan, and has not answered.
    """
    process = living(target)
    if process is None or process.state in STOPPED_STATES:
        return StackAnswer(is_mute=is_mute)
    with entered(target) as target_seen:
        return _ask(target_seen, is_mute=is_mute)


def _ask(target: Target, *, is_mute: bool) -> StackAnswer:
    answer = StackAnswer(is_mute=True) if is_mute else _ask_server(target)
    if answer.stack is not None:
        return answer
    is_held = answer.is_mute and _waits_for_lock(target.pid)
    found = _ask_by_signal(target)
    silence = _HELD if is_held else _MUTE if answer.is_mute else answer.detail
    detail = "; ".join(filter(None, [silence, found.detail]))
    stack = replace(found.stack, is_lock_held=is_held) if found.stack is not None else None
    return replace(found, stack=stack, is_lock_held=is_held, is_mute=answer.is_mute, detail=detail)


def _ask_server(target: Target) -> StackAnswer:
    address = find_server(target)
    if address is None or isinstance(address, Refusal):
        return StackAnswer()
    try:
        body = exchange(address, f"POST {QUESTION}", pid=target.pid, until_s=time.monotonic() + SERVER_S)
    except NoAnswerError as error:
        is_mute = error.reason is AbsenceReason.TIMED_OUT
        return StackAnswer(is_mute=is_mute, detail="" if is_mute else str(error))
    stack = find_fault_stack(body.decode(errors="replace"))
    if stack is None:
        return StackAnswer(detail="its worker server's stacks are not whole")
    return StackAnswer(stack=stack, origin=f"its worker server{QUESTION}", observed_ns=time.time_ns())


def _waits_for_lock(pid: int) -> bool:
    """Whether a thread of the worker server waits for the interpreter lock, by waking every 5 ms: the others sleep through."""
    try:
        looks = [server_switches(pid)]
        time.sleep(BETWEEN_LOOKS_S)
        looks.append(server_switches(pid))
    except (OSError, ParseError):
        return False
    return any(count - looks[0].get(thread, count) >= LEAST_WAKES for thread, count in looks[1].items())


def _ask_by_signal(target: Target) -> StackAnswer:
    folder = folder_of_target(target)
    if folder is None:
        return StackAnswer()
    file = os.path.join(folder, os.fsencode(ASKED_STACKS))  # noqa: PTH118 - bytes
    try:
        own = read_targets_words(target)
        if own is None or own.stack_signal is None:
            return StackAnswer()
        stack = ask_by_signal(target, own.stack_signal, file)
    except (RefusedError, ParseError, OSError):
        return StackAnswer()  # reading the probe (`probes.py`) says why
    except NotAskedError as error:
        return StackAnswer(detail=str(error))
    return StackAnswer(stack=stack, origin=printable(file), observed_ns=time.time_ns())
