"""The child process that attaches: one rank after the other, the first alone, the rest only if it is well a moment later.

When its input ends it leaves: it ends the servers that it has started and removes what the ranks wrote, unless it has been told
to keep them. So nothing stays if pardbg is killed. It may be killed itself at any moment: see `shot.py`; what stays then is a
folder in memory, and in a rank that uses NCCL a server that the next scan finds and uses.
"""

import os
import sys
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from pardbg.collectors.attach.lines import attach_lines, detach_lines, serve_lines
from pardbg.collectors.attach.own_folder import FolderError, make_folder, remove_dump, remove_folder
from pardbg.collectors.attach.request import Answer, KeepRequest, Request, Target
from pardbg.collectors.attach.server_threads import has_server_thread
from pardbg.collectors.attach.shooting import Outcome, shoot
from pardbg.collectors.live.identity import is_same_process, read_living
from pardbg.collectors.live.recorders.http_exchange import NoAnswerError, exchange
from pardbg.collectors.live.recorders.listening import UnixAddress
from pardbg.collectors.probe.places import SERVER_SOCKET
from pardbg.watchdog.model.names import AbsenceReason
from pardbg.watchdog.model.process import STOPPED_STATES

CANARY_S = 0.1
_ANSWER_S = 2.0
_END_S, _END_PAUSE_S = 1.0, 0.1
_POLL_S = 0.005


def main() -> None:
    """Attaches, then keeps or leaves."""
    request = msgspec.json.decode(sys.stdin.buffer.readline(), type=Request)
    attached: list[tuple[Target, Answer]] = []
    is_kept = False
    try:
        _attach_all(request, attached)
        if line := sys.stdin.buffer.readline():
            asked = msgspec.json.decode(line, type=KeepRequest)
            is_kept = True
            _keep(asked, attached)
    except (BrokenPipeError, msgspec.DecodeError):  # pardbg has ended, perhaps in the middle of a line
        pass
    finally:
        for target, answer in () if is_kept else attached:
            _leave(target, answer)


def _attach_all(request: Request, attached: list[tuple[Target, Answer]]) -> None:
    trouble, is_watched = "", False
    for target in request.targets:
        if attached and not is_watched:
            time.sleep(CANARY_S)
            trouble, is_watched = _trouble_of(attached[0][0]), True
        if time.monotonic() > request.until_s:
            return
        answer = Answer(rank=target.rank, reason=AbsenceReason.SKIPPED, detail=trouble) if trouble else _attach(target)
        if answer.is_fired:
            attached.append((target, answer))
        _write(answer)


def _attach(target: Target) -> Answer:
    if not is_same_process(target.pid, target.started_ticks):
        return Answer(rank=target.rank, reason=AbsenceReason.GONE, detail="its process has ended")
    if os.geteuid() not in {0, target.uid}:
        detail = f"not attached to: its process belongs to user {target.uid}: run pardbg as root"
        return Answer(rank=target.rank, reason=AbsenceReason.DENIED, detail=detail)
    try:
        make_folder(target)  # what it returns is open for as long as we live
    except FolderError as error:
        return Answer(rank=target.rank, reason=AbsenceReason.SKIPPED, detail=f"not attached to: {error}")
    except OSError as error:
        detail = f"not attached to: no folder for it to write to, {target.folder}: {error.strerror or error}"
        return Answer(rank=target.rank, reason=AbsenceReason.DENIED, detail=detail)
    outcome = shoot(target.pid, attach_lines(target.folder, target.rank))
    if outcome.shot is None:
        remove_folder(target)
    return _answer(target, outcome)


def _answer(target: Target, outcome: Outcome) -> Answer:
    if outcome.shot is None:
        return Answer(rank=target.rank, reason=outcome.reason, detail=f"not attached to: {outcome.why}")
    stopped_s = outcome.shot.stopped_s
    if not outcome.is_done and not is_same_process(target.pid, target.started_ticks):
        return Answer(rank=target.rank, reason=AbsenceReason.GONE, detail="its process has ended")
    if outcome.is_done:
        is_serving = _is_serving(target)
        return Answer(rank=target.rank, is_done=True, is_fired=True, is_serving=is_serving, stopped_s=stopped_s)
    detail = "attached to, but its interpreter lock is held: it does nothing until the lock comes free"
    return Answer(rank=target.rank, is_fired=True, reason=AbsenceReason.TIMED_OUT, detail=detail, stopped_s=stopped_s)


def _is_serving(target: Target) -> bool:
    """Whether a server has been started there, and answers."""
    path = Path(target.folder, SERVER_SOCKET)
    until_s = time.monotonic() + _ANSWER_S
    while path.is_socket() and time.monotonic() < until_s:
        with suppress(NoAnswerError):
            exchange(UnixAddress(path=bytes(path)), "GET /handler/", pid=target.pid, until_s=until_s)
            return True
        time.sleep(_POLL_S)
    return False


def _keep(request: KeepRequest, attached: list[tuple[Target, Answer]]) -> None:
    for target, answer in attached:
        is_late = time.monotonic() > request.until_s
        if answer.is_done and not answer.is_serving and not is_late and is_same_process(target.pid, target.started_ticks):
            answer = _answer(target, shoot(target.pid, serve_lines(target.folder)))  # noqa: PLW2901
        if answer.is_serving:
            with suppress(OSError):
                remove_dump(target)
        else:
            _leave(target, answer)
        with suppress(BrokenPipeError):
            _write(answer)


def _leave(target: Target, answer: Answer) -> None:
    """A server that does not end keeps its folder, so that the next scan finds it: it has not come up, or is at work."""
    has_server = Path(target.folder, SERVER_SOCKET).is_socket() and is_same_process(target.pid, target.started_ticks)
    if not has_server or (answer.is_serving and _is_server_ended(target)):
        with suppress(OSError):
            remove_folder(target)


def _is_server_ended(target: Target) -> bool:
    until_s = time.monotonic() + _END_S
    while True:
        if not shoot(target.pid, detach_lines()).is_done:
            return False
        with suppress(OSError):
            if not has_server_thread(target.pid):
                return True
        if time.monotonic() > until_s:
            return False
        time.sleep(_END_PAUSE_S)


def _trouble_of(canary: Target) -> str:
    """Why no other rank is attached to, by what has become of the first; empty if it is well."""
    living = read_living(canary.pid)
    first = f"not attached to: rank {canary.rank}, the first to be,"
    if living is None or living.started_ticks != canary.started_ticks:
        return f"{first} has ended since"
    return f"{first} has been stopped since" if living.state in STOPPED_STATES else ""


def _write(answer: Answer) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
