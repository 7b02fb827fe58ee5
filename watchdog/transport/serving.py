"""A node's side of the conversation: requests in on standard input, answers out on standard output, nothing else there.

The handler runs in the main thread, one request at a time; a second thread listens, says so when an answer is late, and sees to
the end: when the input ends, the parent is gone, the output breaks, or no request has come for long. It ends also while
the handler is busy: that is interrupted as by Ctrl-C, and after `LEAVE_S` the process ends whatever it does.
"""

import contextlib
import os
import queue
import signal
import socket
import sys
import threading
from collections.abc import Callable

from pardbg.watchdog.errors import PardbgError
from pardbg.watchdog.model.names import AbsenceReason
from pardbg.watchdog.transport.lines import Request
from pardbg.watchdog.transport.listening import Listener
from pardbg.watchdog.transport.speaking import Speaker

Handler = Callable[[bytes], bytes]

IDLE_S = 120.0
"""Without a request for so long after the last one was worth something, nobody is there any more."""
LEAVE_S = 1.0


class CannotAnswerError(PardbgError):
    """Raised by a handler that knows why it has no answer; the words travel."""

    def __init__(self, reason: AbsenceReason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def serve(handler: Handler, *, node: str | None = None, idle_s: float = IDLE_S) -> None:
    """Answers requests until nobody is there to ask any; must be called in the main thread, once.

    Standard output belongs to the protocol from here on: what else is printed goes to standard error.

    Args:
        handler: the data of a request -> the data of its answer. What it raises is answered as a reason, by its type and place
            alone, since its words may hold what must not leave the node; those of a `PardbgError` travel.
        node: this node's name; see `node_name`.
        idle_s: see `IDLE_S`.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have started us with it switched off
    main_thread_id = threading.get_ident()
    speaker = Speaker(_take_output(), node_name(node))
    requests: queue.SimpleQueue[Request | None] = queue.SimpleQueue()
    is_over = threading.Event()
    listener = Listener(speaker, requests.put, idle_s)

    def attend() -> None:
        listener.listen()
        requests.put(None)
        if not is_over.wait(LEAVE_S / 2):
            signal.pthread_kill(main_thread_id, signal.SIGINT)  # a real one: it ends waiting, too
            if not is_over.wait(LEAVE_S):
                os._exit(0)  # the handler is stuck: threads and finally clauses of others would only keep us

    speaker.greet()
    threading.Thread(target=attend, daemon=True).start()
    with contextlib.suppress(KeyboardInterrupt):
        while (request := requests.get()) is not None:
            _answer(handler, request, speaker)
    is_over.set()


def node_name(given: str | None = None) -> str:
    """What this node is called: as given by who started us, else as Slurm calls it, else its host name."""
    return given or os.environ.get("SLURMD_NODENAME") or socket.gethostname()


def _answer(handler: Handler, request: Request, speaker: Speaker) -> None:
    if not speaker.is_owed(request.id):
        return  # its time was over before its turn came
    try:
        data = handler(request.data)
    except CannotAnswerError as error:
        speaker.refuse(request.id, error.reason, str(error))
    except PardbgError as error:
        speaker.refuse(request.id, AbsenceReason.UNREADABLE, f"{error} ({error.remedy})")
    except Exception as error:  # noqa: BLE001 - one bad request must not end the node
        speaker.refuse(request.id, AbsenceReason.UNREADABLE, f"its pardbg failed: {type(error).__name__} at {_place(error)}")
    else:
        speaker.answer(request.id, data)


def _place(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}" if trace else "an unknown place"  # noqa: PTH119


def _take_output() -> int:
    """A descriptor for the protocol alone; file descriptor 1 is standard error from now on."""
    sys.stdout.flush()
    output = os.dup(1)
    os.dup2(2, 1)
    return output
