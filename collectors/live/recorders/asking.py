"""Way 1: the worker server that the rank runs, on a unix socket or, under `torch.distributed.debug`, on a TCP port.

Cost to the rank: one to three requests, answered by its server's own threads without the GIL and without imports; 1 ms for a
small ring, 22 to 44 ms for 2,000 entries. NCCL's recorder also asks CUDA about its unfinished events, as torch's own dump on a
timeout does. Deadline: 2 s for the list of handlers, all that is left of the scan's for a dump. It leaves nothing behind.
The answers hold no stacks: call sites come with `nccl_pipe.py` and `dump_file.py` only. The frontend of the debug server is not
used: it asks every rank of the job in turn, and it is gone with rank 0.
"""

import time

from pardbg.collectors.live.recorders.handlers import choose_questions, parse_handler_names, rate
from pardbg.collectors.live.recorders.http_exchange import NoAnswerError, exchange
from pardbg.collectors.live.recorders.listening import TcpAddress, UnixAddress
from pardbg.collectors.live.recorders.outcome import Obtained, Outcome, Refusal
from pardbg.collectors.live.recorders.request import Target
from pardbg.collectors.live.recorders.serial_parser import SerialParser
from pardbg.collectors.live.recorders.server_finding import Address, find_server
from pardbg.collectors.walking import printable
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.names import AbsenceReason

_LIST_S = 2.0  # under 1 ms, but for a machine that has other things to do


def ask_server(target: Target, parser: SerialParser, until_s: float) -> Outcome | None:
    """Asks the rank's worker server; None if it runs none."""
    address = find_server(target)
    if address is None or isinstance(address, Refusal):
        return address
    url = _url(address)
    try:
        listed = exchange(address, "GET /handler/", pid=target.pid, until_s=min(until_s, time.monotonic() + _LIST_S))
        questions = choose_questions(parse_handler_names(listed))
        answers = [_ask(address, question, target, parser, until_s) for question in questions]
    except NoAnswerError as error:
        return Refusal(reason=error.reason, detail=str(error), origin=url)
    except ParseError as error:
        return Refusal(reason=AbsenceReason.UNREADABLE, detail=str(error), origin=url)
    return _choose(answers, url)


def _ask(address: Address, question: str, target: Target, parser: SerialParser, until_s: float) -> Outcome:
    """One question; its failure must not lose the answer to another."""
    origin = _url(address) + question
    try:
        body = exchange(address, f"POST {question}", pid=target.pid, until_s=until_s)
        observed_ns = time.time_ns()
        return Obtained(recording=parser.parse(body), origin=origin, observed_ns=observed_ns)
    except NoAnswerError as error:
        return Refusal(reason=error.reason, detail=str(error), origin=origin)
    except ParseError as error:
        return Refusal(reason=AbsenceReason.UNREADABLE, detail=f"its worker server's answer: {error}", origin=origin)


def _choose(answers: list[Outcome], url: str) -> Outcome:
    """The fullest recording; of equals the first. A question without an answer may hide the one that matters."""
    if not answers:
        detail = "its worker server has no handler for a flight recorder"
        return Refusal(reason=AbsenceReason.UNSUPPORTED, detail=detail, origin=url)
    obtained = [answer for answer in answers if isinstance(answer, Obtained)]
    best = max(obtained, key=lambda answer: rate(answer.recording), default=None)
    refused = next((answer for answer in answers if isinstance(answer, Refusal)), None)
    if best is not None and rate(best.recording) and (refused is None or answers.index(best) < answers.index(refused)):
        return best
    if refused is not None:
        return refused
    detail = "its worker server's recorders are all empty: switched off in its code, or nothing entered yet"
    return Refusal(reason=AbsenceReason.EMPTY, detail=detail, origin=url)


def _url(address: UnixAddress | TcpAddress) -> str:
    if isinstance(address, UnixAddress):
        return f"unix:{printable(address.path)}"
    return f"http://{f'[{address.host}]' if ':' in address.host else address.host}:{address.port}"
