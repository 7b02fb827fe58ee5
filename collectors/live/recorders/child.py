"""The child process that reaches for recorders, or asks for stacks: each rank in a thread of its own, as one may hang.

It may hang in the kernel on a job's file, run out of memory or be killed, and nothing else suffers. It is asked once, on its
standard input, and ends when every rank has its answer or the time is up.
"""

import contextlib
import gc
import os
import queue
import threading
import time
from typing import BinaryIO

import msgspec

from pardbg.collectors.first_to_go import be_the_first_to_go
from pardbg.collectors.live.probe.stack_asking import ask_stack
from pardbg.collectors.live.recorders.approach import reach
from pardbg.collectors.live.recorders.outcome import Outcome, Refusal, StackAnswer
from pardbg.collectors.live.recorders.request import Reply, Request, Target, frame_reply
from pardbg.collectors.live.recorders.serial_parser import SerialParser
from pardbg.watchdog.model.names import AbsenceReason

_MOST_THREADS = 32
_STACK_BYTES = 1024 * 1024


def main() -> None:
    """Answers the one request on standard input."""
    be_the_first_to_go()
    gc.disable()  # parsed dumps are trees: the collector doubles the time to build them
    threading.stack_size(_STACK_BYTES)
    with os.fdopen(os.dup(0), "rb") as requests, os.fdopen(os.dup(1), "wb") as replies:
        os.dup2(2, 1)  # nothing else may write between the frames
        serve(msgspec.msgpack.decode(requests.read(), type=Request), replies)
    os._exit(0)  # a thread that hangs is not waited for


def serve(request: Request, replies: BinaryIO) -> None:
    """Answers for each rank as soon as it is known, until the time is up."""
    targets: queue.SimpleQueue[Target] = queue.SimpleQueue()
    answers: queue.SimpleQueue[Reply] = queue.SimpleQueue()
    for target in request.targets:
        targets.put(target)
    parser = SerialParser()

    def work() -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                target = targets.get_nowait()
                answers.put(Reply(rank=target.rank, outcome=_reach_safely(target, parser, request)))

    for _ in range(min(_MOST_THREADS, len(request.targets))):
        threading.Thread(target=work, daemon=True).start()
    with contextlib.suppress(queue.Empty, BrokenPipeError):
        for _ in request.targets:
            replies.write(frame_reply(answers.get(timeout=max(0.0, request.until_s - time.monotonic()))))
            replies.flush()


def _reach_safely(target: Target, parser: SerialParser, request: Request) -> Outcome | StackAnswer:
    origin = f"/proc/{target.pid}"
    try:
        if request.is_for_stacks:
            return ask_stack(target, is_mute=target.rank in request.mute_ranks)
        return reach(target, parser, request.began_ns, request.until_s)
    except MemoryError:
        detail = "its recorder's answer needs more memory than it may take"
        return Refusal(reason=AbsenceReason.UNREADABLE, detail=detail, origin=origin)
    except Exception as error:  # noqa: BLE001 - whatever one rank does, the others are answered for
        detail = f"its recorder could not be read: {type(error).__name__}"
        return Refusal(reason=AbsenceReason.UNREADABLE, detail=detail, origin=origin)


if __name__ == "__main__":
    main()
