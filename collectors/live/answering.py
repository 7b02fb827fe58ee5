"""What a reader's child answers about the files of a live job. What it reads of them it keeps to itself, the facts apart."""

import contextlib
import importlib.util
import os
from collections.abc import Iterable
from pathlib import Path

from pardbg.collectors.ended.finding import list_left
from pardbg.collectors.ended.reading import read_last
from pardbg.collectors.ended.requests import LastRequest, LeftRequest
from pardbg.collectors.live.kernel_reading import read_kernel_log
from pardbg.collectors.live.output_files import list_outputs, read_output
from pardbg.collectors.live.probe.held_page import hold_page
from pardbg.collectors.live.probe.reading import read_probe
from pardbg.collectors.live.probe.routing_reading import read_routing
from pardbg.collectors.live.ras_asking import ask_ras
from pardbg.collectors.live.recorders.rank_root import opened_root
from pardbg.collectors.live.recorders.trusted_file import RefusedError
from pardbg.collectors.opening import open_regular, read_source, read_source_inside, read_tail
from pardbg.collectors.parsing.fault_dump import find_fault_stack
from pardbg.collectors.parsing.log_events import parse_log_events
from pardbg.collectors.parsing.present_attempt import present_attempt
from pardbg.collectors.parsing.rank_log import find_ranks, parse_rank_log
from pardbg.collectors.parsing.slurm_notices import parse_notices
from pardbg.collectors.parsing.source import read_contexts
from pardbg.collectors.procfs.status import parse_status
from pardbg.collectors.reading_job import (
    JobReply,
    JobRequest,
    KernelLogRequest,
    OutputRead,
    OutputRequest,
    PageRequest,
    ProbeRequest,
    RasRequest,
    RoutingRequest,
    ScriptOutput,
    ScriptOutputRequest,
    SourceRead,
    SourceRequest,
)
from pardbg.collectors.reading_protocol import Problem, frame, unread
from pardbg.collectors.rights import rights_of
from pardbg.collectors.walking import is_elsewhere
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.names import AbsenceReason

_TRACEBACK = "Traceback (most recent call last):"
_CHARS_BEFORE = 20_000  # what stands before a traceback can say whose it is; megabytes of steps say nothing


def answer_job(request: JobRequest) -> bytes:
    """Does what is asked, and encodes the answer or why there is none."""
    reason = AbsenceReason.UNREADABLE
    try:
        return frame(_answer(request))
    except RefusedError as error:
        reason, detail = error.refusal.reason, error.refusal.detail
    except ParseError as error:
        detail = str(error)
    except PermissionError as error:
        reason, detail = AbsenceReason.DENIED, error.strerror or "not permitted"
    except ProcessLookupError:
        reason, detail = AbsenceReason.GONE, "the process has ended"
    except OSError as error:
        detail = error.strerror or type(error).__name__
    except (MemoryError, RecursionError, ValueError, LookupError) as error:  # its words may quote what was read
        detail = f"not to be read: {type(error).__name__}"
    return frame(unread(Problem(path="", reason=reason, detail=detail)))


def _answer(request: JobRequest) -> JobReply:
    if isinstance(request, SourceRequest):
        return _read_source(request)
    if isinstance(request, ProbeRequest):
        return read_probe(request)
    if isinstance(request, PageRequest | RoutingRequest):
        return hold_page(request) if isinstance(request, PageRequest) else read_routing(request)
    if isinstance(request, KernelLogRequest | RasRequest | ScriptOutputRequest):
        return _answer_host(request)
    if isinstance(request, LeftRequest | LastRequest):
        return list_left(request) if isinstance(request, LeftRequest) else read_last(request)
    return _read_output(request) if isinstance(request, OutputRequest) else list_outputs(request)


def _answer_host(request: KernelLogRequest | RasRequest | ScriptOutputRequest) -> JobReply:
    if isinstance(request, ScriptOutputRequest):
        return _read_script_output(request)
    return ask_ras(request) if isinstance(request, RasRequest) else read_kernel_log(request)


def _read_source(request: SourceRequest) -> SourceRead:
    with (
        opened_root(request.inside) as root,
        rights_of(request.uid, request.whose) as check,
    ):  # root may read more than the user
        file = read_source(request.path, check) if root is None else read_source_inside(root, request.path, request.uid)
    try:
        text = importlib.util.decode_source(file.data)
    except (SyntaxError, UnicodeDecodeError):
        raise ParseError("not a text in the encoding that it names") from None
    return SourceRead(contexts=read_contexts(text, request.lines), changed_ns=file.changed_ns)


def _read_output(request: OutputRequest) -> OutputRead:
    opened = read_output(request)
    text = present_attempt(opened.data.decode(errors="replace"), _all_numbers(request.live_pids))
    first = text.find(_TRACEBACK)
    tracebacks = parse_rank_log(text[max(0, first - _CHARS_BEFORE) :]) if first >= 0 else ()
    stack = find_fault_stack(text)
    events = parse_log_events(text)
    signed_by = find_ranks(text) if tracebacks or stack or events else frozenset[int]()
    return OutputRead(tracebacks=tracebacks, signed_by=signed_by, stack=stack, mtime_ns=opened.mtime_ns, events=events)


def _read_script_output(request: ScriptOutputRequest) -> ScriptOutput:
    real = os.path.realpath(request.path)
    if is_elsewhere(request.path) or is_elsewhere(real):
        raise ParseError("not a file that a job writes to: not read")
    with open_regular(real) as (descriptor, status):
        text = read_tail(descriptor, status.st_size).decode(errors="replace")
    return ScriptOutput(
        tracebacks=parse_rank_log(text),
        signed_by=find_ranks(text),
        notices=parse_notices(text),
        mtime_ns=status.st_mtime_ns,
    )


def _all_numbers(pids: Iterable[int]) -> set[int]:
    """What the processes are called in each of their pid namespaces: a launcher in a container writes the inner numbers."""
    numbers = set(pids)
    for pid in list(numbers):
        with contextlib.suppress(OSError, ParseError):
            text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
            numbers.update(parse_status(text).namespace_pids)
    return numbers
