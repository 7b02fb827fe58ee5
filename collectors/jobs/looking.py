"""Looks into many processes with threads. Runs in a reader's child: a process stuck in the kernel keeps a thread for ever.

One thread as long as everybody answers; while nobody does, their number doubles, so that many stuck processes do not add up.
Deadline: `LookRequest.silence_s` without any answer, then the rest counts as silent. The child is of no use afterwards.
"""

import contextlib
import queue
import threading
import time
from collections import deque
from collections.abc import Callable

from pardbg.collectors.jobs.look import TorchUsers, look_at
from pardbg.collectors.jobs.process import LookRequest, Looks, ProcessLook
from pardbg.watchdog.errors import ParseError

_MOST_THREADS = 64
_STALL_S = 0.05

_Answer = tuple[int, ProcessLook | None]


def look_at_all(request: LookRequest) -> Looks:
    """Looks at the processes in the given order; parents before children save time."""
    waiting = deque(request.pids)
    answers: queue.SimpleQueue[_Answer] = queue.SimpleQueue()
    torch_users: TorchUsers = {}

    def work() -> None:
        with contextlib.suppress(IndexError):
            while True:
                pid = waiting.popleft()
                look = None
                with contextlib.suppress(OSError, ParseError):  # it has ended meanwhile
                    look = look_at(request.proc, pid, torch_users)
                answers.put((pid, look))

    looks: dict[int, ProcessLook | None] = {}
    thread_count = 0
    heard_at_s = time.monotonic()
    while len(looks) < len(request.pids) and time.monotonic() - heard_at_s < request.silence_s:
        if waiting and thread_count < _MOST_THREADS:
            thread_count += _start(work, max(1, thread_count))
        while part := _take(answers):
            looks |= part
            heard_at_s = time.monotonic()
            if len(looks) == len(request.pids):
                break
    return Looks(
        processes=tuple(look for look in looks.values() if look is not None),
        silent=tuple(pid for pid in request.pids if pid not in looks),
    )


def _start(work: Callable[[], None], count: int) -> int:
    for _ in range(count):
        threading.Thread(target=work, daemon=True).start()
    return count


def _take(answers: "queue.SimpleQueue[_Answer]") -> dict[int, ProcessLook | None]:
    """All that has come in; waits a moment for the first. Empty: nobody answers."""
    taken: dict[int, ProcessLook | None] = {}
    with contextlib.suppress(queue.Empty):
        for wait_s in (_STALL_S, *([0.0] * 100)):
            pid, look = answers.get(timeout=wait_s) if wait_s else answers.get_nowait()
            taken[pid] = look
    return taken
