"""What a file is, by its content, and its meaning through the parser that reads it.

Names only break ties: what a damaged or an empty file was meant to be.
"""

import codecs
import re
from collections.abc import Callable, Iterable, Iterator
from enum import Enum

import msgspec

from pardbg.collectors.parsing import file_names
from pardbg.collectors.parsing.crash_lines import tells_crash
from pardbg.collectors.parsing.error_lines import last_errors
from pardbg.collectors.parsing.flight_recorder import parse_flight_recorder
from pardbg.collectors.parsing.gpu_series import is_gpu_series, parse_gpu_series
from pardbg.collectors.parsing.job_file import parse_job
from pardbg.collectors.parsing.kernel_log import looks_like_kernel_log, parse_kernel_log
from pardbg.collectors.parsing.kernel_times import parse_kernel_times
from pardbg.collectors.parsing.log_events import parse_log_events, tells_events
from pardbg.collectors.parsing.many_ranks import is_of_many_ranks
from pardbg.collectors.parsing.process import PROCESS_SCHEMA, parse_process
from pardbg.collectors.parsing.rank_log import LOG_TAIL_BYTES, find_ranks, is_rank_log, parse_rank_log
from pardbg.collectors.parsing.ras_json import parse_ras_json
from pardbg.collectors.parsing.ras_text import find_ras_answer, is_ras_text, parse_ras_text
from pardbg.collectors.parsing.routing_lines import is_routing_lines, parse_routing_lines
from pardbg.collectors.parsing.routing_page import is_routing_page, parse_routing_page
from pardbg.collectors.parsing.saved_evidence import EVIDENCE_SCHEMA, parse_evidence
from pardbg.collectors.parsing.slurm_notices import tell_ending
from pardbg.collectors.parsing.stacks import parse_stacks
from pardbg.collectors.parsing.step_trace import HEAD as PARQUET_HEAD
from pardbg.collectors.parsing.step_trace import is_step_trace, parse_step_trace
from pardbg.collectors.parsing.unsigned_tracebacks import give_to_reported
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.evidence import Absence, Evidence, FlightRecording, Observation
from pardbg.watchdog.model.kernel import KernelLog
from pardbg.watchdog.model.log_event import LauncherFailure, LogSeen, tells_fault
from pardbg.watchdog.model.names import AbsenceReason, CollectorName
from pardbg.watchdog.model.ras import RasSeen

HEAD_BYTES = 64 * 1024
_PICKLE_HEADS = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
_JSON_HEAD = re.compile(rb'\s*(?:\{\s*["}]|\[\s*[\{\]])')
_PROCESS_SCHEMA, _EVIDENCE_SCHEMA = f'"{PROCESS_SCHEMA}"'.encode(), f'"{EVIDENCE_SCHEMA}"'.encode()
_OBJECTS_HEAD = re.compile(rb'\[\s*\{\s*"')
_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_DUMP_WORDS = re.compile(rb'"(?:pg_config|pg_status|profiling_name|comm_lib_version|nccl_comm_state)"')
_STACK_WORDS = re.compile(rb'"(?:os_thread_id|owns_gil|thread_id)"')
_STACK_TEXT = re.compile(
    r"^(?:(?:Current thread|Thread) 0x[0-9a-fA-F]+.*\(most recent call first\):"
    r'|Thread (?:0x)?[0-9a-fA-F]+ \((?:idle|active)[a-z+]*\)(?:: ".*")?)\s*$',
    re.MULTILINE,
)


class Content(str, Enum):
    """What bytes are."""

    FLIGHT_RECORDER = "flight-recorder"
    STACKS = "stacks"
    JOB = "job"
    PROCESS = "process"
    GPU_SERIES = "gpu-series"
    ROUTING = "routing"
    SAVED = "saved-evidence"
    RANK_LOG = "rank-log"
    KERNEL_LOG = "kernel-log"
    RAS = "ras"
    STEP_TRACE = "step-trace"
    KERNEL_TIMES = "kernel-times"
    EMPTY_LOG = "empty-log"
    UNRECOGNISED = "unrecognised"

    @property
    def source(self) -> CollectorName:
        """The collector that such content belongs to."""
        return _SOURCES.get(self, CollectorName.HOST)


_SOURCES = {
    Content.FLIGHT_RECORDER: CollectorName.FLIGHT_RECORDER,
    Content.STACKS: CollectorName.STACKS,
    Content.GPU_SERIES: CollectorName.GPU,
    Content.ROUTING: CollectorName.ROUTING,
    Content.RANK_LOG: CollectorName.RANK_LOG,
    Content.KERNEL_LOG: CollectorName.KERNEL_LOG,
    Content.RAS: CollectorName.RAS,
    Content.STEP_TRACE: CollectorName.GPU,
    Content.KERNEL_TIMES: CollectorName.GPU,
}


_SCHEMAS = {_PROCESS_SCHEMA: Content.PROCESS, _EVIDENCE_SCHEMA: Content.SAVED}


OF_NO_RANK = frozenset({Content.KERNEL_LOG, Content.RAS, Content.STEP_TRACE})
"""What speaks of a host or of the whole job, whatever numbers are in its name."""


class Portion(str, Enum):
    """How much of a file its parser needs."""

    WHOLE = "whole"
    TAIL = "tail"
    TABLE = "table"  # the whole, unless it is so large that it is the job's data
    NOTHING = "nothing"


class Found(Noun, frozen=True, kw_only=True):
    """One observation and the rank that the content itself names."""

    rank: int | None = None
    observation: Observation


class ParsedFile(Noun, frozen=True, kw_only=True):
    """What one file says.

    ``signed_by`` are the ranks that sign its lines, where it is a log; ``is_of_many``: several ranks wrote it, signed or not.
    ``saved`` is the evidence that a scan has kept.
    """

    content: Content
    found: tuple[Found, ...] = ()
    saved: tuple[Evidence, ...] = ()
    signed_by: frozenset[int] = frozenset()
    is_of_many: bool = False


class _Keys(msgspec.Struct):
    """The keys that tell JSON files apart; their values are skipped unread."""

    entries: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    pg_config: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    pg_status: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    ranks: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    schema: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    frames: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    profiling_name: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    t: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    util: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    nccl_version: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    communicators: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    traced: msgspec.Raw | msgspec.UnsetType = msgspec.field(default=msgspec.UNSET, name="traceEvents")


def read_text(data: bytes) -> str:
    """The end of a log, in the encoding that its first bytes name: shells of Windows write UTF-16. Else it is UTF-8."""
    encoding = next((name for mark, name in _MARKS.items() if data.startswith(mark)), "utf-8")
    end = data if encoding == "utf-16" else data[-LOG_TAIL_BYTES:]
    return end.decode(encoding, errors="replace")


def choose_portion(head: bytes) -> Portion:
    """Says from the first `HEAD_BYTES` how much of the file is worth reading: most binaries nothing, text its end."""
    if head.startswith(_PICKLE_HEADS) or _JSON_HEAD.match(head) or is_routing_lines(head) or is_routing_page(head):
        return Portion.WHOLE
    if head.startswith(PARQUET_HEAD):
        return Portion.TABLE
    if head.startswith(tuple(_MARKS)):
        return Portion.WHOLE
    if b"\0" in head[:4096] or head.startswith((b"\x1f\x8b", b"PK\x03\x04", b"BZh", b"\xfd7zXZ", b"(\xb5/\xfd")):
        return Portion.NOTHING
    return Portion.TAIL


def recognise(name: str, data: bytes) -> Content:
    """Decides what a file's bytes are; ``name`` decides only where the content cannot."""
    if not data.strip():
        return guess_by_name(name)
    if data.startswith(_PICKLE_HEADS):
        return Content.FLIGHT_RECORDER
    if is_routing_page(data) or is_routing_lines(data[:HEAD_BYTES]):  # whose first line may be cut
        return Content.ROUTING
    if _JSON_HEAD.match(data):
        return _recognise_json(name, data)
    if choose_portion(data[:HEAD_BYTES]) in {Portion.NOTHING, Portion.TABLE}:
        return _recognise_binary(name, data)
    return _recognise_text(name, read_text(data))


def parse_file(name: str, data: bytes) -> ParsedFile:
    """Reads one file of any kind that pardbg knows; what it does not know is unrecognised, never an error.

    Raises:
        ParseError: if it is clearly meant as evidence and cannot be used, in one line.
    """
    content = recognise(name, data)
    if not data.strip():
        if content in {Content.EMPTY_LOG, Content.UNRECOGNISED}:
            return ParsedFile(content=content)
        raise ParseError("the file is empty", remedy="its writer was killed, or the disk was full: dump again")
    return parse_as(content, data)


def parse_as(content: Content, data: bytes) -> ParsedFile:
    """Reads bytes whose kind is known.

    Raises:
        ParseError: if they cannot be used.
    """
    if content is Content.SAVED:
        return ParsedFile(content=content, saved=parse_evidence(data))
    if content is Content.RANK_LOG:
        text = read_text(data)
        logged = parse_log_events(text)
        failures = (event for item in logged for event in item.seen.events if isinstance(event, LauncherFailure))
        raised = give_to_reported(parse_rank_log(text), failures)
        tracebacks = (Found(rank=item.rank, observation=item.traceback) for item in raised)
        events = tuple(Found(rank=item.rank, observation=item.seen) for item in logged)
        named = frozenset(found.rank for found in events if found.rank is not None)
        ending = tell_ending(text)
        beside = (Found(observation=seen) for seen in (ending, find_ras_answer(text)) if seen is not None)
        told = (*tracebacks, *events, *beside)
        is_silent = not raised and ending is None and not any(tells_fault(item.seen) for item in logged)
        last = last_errors(text) if is_silent else ()
        rest = (Found(observation=LogSeen(events=(), last_errors=last)),) if last or not told else ()  # that it was read
        signed_by, is_of_many = find_ranks(text) | named, is_of_many_ranks(text)
        return ParsedFile(content=content, found=(*told, *rest), signed_by=signed_by, is_of_many=is_of_many)
    if content in _PARSERS_OF_RANKS:
        found = tuple(Found(rank=rank, observation=seen) for rank, seen in _PARSERS_OF_RANKS[content](data))
        return ParsedFile(content=content, found=found)
    if content is Content.ROUTING and is_routing_page(data):
        return ParsedFile(content=content, found=(Found(observation=parse_routing_page(data)),))
    if content is Content.ROUTING:
        read = parse_routing_lines(data)
        found = tuple(Found(rank=rank, observation=series) for rank, series in read.series.items())
        return ParsedFile(content=content, found=(*found, *(Found(observation=loss) for loss in read.losses)))
    parse = _PARSERS.get(content)
    return ParsedFile(content=content, found=(Found(observation=parse(data)),) if parse else ())


def tell_unread(content: Content, read_bytes: int, size_bytes: int) -> Iterator[Found]:
    """That only the end of a long log was read: what stands before it may be what matters."""
    if content in {Content.RANK_LOG, Content.KERNEL_LOG} and read_bytes < size_bytes:
        detail = f"only the newest {read_bytes >> 20} of {size_bytes / (1 << 20):.0f} MiB of this log were read"
        yield Found(observation=Absence(reason=AbsenceReason.SKIPPED, detail=detail))


def _parse_recording(data: bytes) -> FlightRecording:
    return FlightRecording(recording=parse_flight_recorder(data))


def _parse_kernel_log(data: bytes) -> KernelLog:
    return parse_kernel_log(read_text(data))


def _parse_ras(data: bytes) -> RasSeen:
    return parse_ras_json(data) if _JSON_HEAD.match(data) else parse_ras_text(data.decode(errors="replace"))


_PARSERS: dict[Content, Callable[[bytes], Observation]] = {
    Content.FLIGHT_RECORDER: _parse_recording,
    Content.STACKS: parse_stacks,
    Content.JOB: parse_job,
    Content.PROCESS: parse_process,
    Content.RAS: _parse_ras,
    Content.STEP_TRACE: parse_step_trace,
    Content.KERNEL_LOG: _parse_kernel_log,
}
_PARSERS_OF_RANKS: dict[Content, Callable[[bytes], Iterable[tuple[int | None, Observation]]]] = {
    Content.GPU_SERIES: parse_gpu_series,
    Content.KERNEL_TIMES: lambda data: (parse_kernel_times(data),),
}


def guess_by_name(name: str) -> Content:
    """What a file without usable content was meant to be."""
    for fits, content in _BY_NAME:
        if fits(name):
            return content
    has_rank = re.search(r"rank_?\d", name) is not None
    return Content.FLIGHT_RECORDER if has_rank else Content.UNRECOGNISED


_BY_NAME: tuple[tuple[Callable[[str], bool], Content], ...] = (
    (file_names.is_dump_name, Content.FLIGHT_RECORDER),
    (file_names.is_stacks_name, Content.STACKS),
    (lambda name: name == "job.json", Content.JOB),
    (file_names.is_process_name, Content.PROCESS),
    (file_names.is_kernel_log, Content.KERNEL_LOG),
    (file_names.is_log_name, Content.EMPTY_LOG),
    (file_names.is_series_name, Content.GPU_SERIES),
    (file_names.is_routing_name, Content.ROUTING),
)


def _recognise_binary(name: str, data: bytes) -> Content:
    if is_step_trace(data):
        return Content.STEP_TRACE
    return Content.FLIGHT_RECORDER if file_names.is_dump_name(name) else Content.UNRECOGNISED


def _recognise_json(name: str, data: bytes) -> Content:
    try:
        if data.lstrip()[:1] == b"{":
            return _recognise_object(name, msgspec.json.decode(data, type=_Keys))
        return _recognise_list(name, msgspec.json.decode(data, type=list[_Keys]))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _recognise_damaged(name, data)


def _recognise_object(name: str, keys: _Keys) -> Content:
    if keys.schema is not msgspec.UNSET:  # a report or a layout of ours is no evidence
        return _SCHEMAS.get(bytes(keys.schema), Content.UNRECOGNISED)
    is_ras = keys.communicators is not msgspec.UNSET and keys.nccl_version is not msgspec.UNSET
    if is_ras or keys.traced is not msgspec.UNSET:
        return Content.RAS if is_ras else Content.KERNEL_TIMES
    if any(key is not msgspec.UNSET for key in (keys.pg_config, keys.pg_status, keys.entries)):
        return Content.FLIGHT_RECORDER
    if keys.t is not msgspec.UNSET and keys.util is not msgspec.UNSET:  # a series of one line
        return Content.GPU_SERIES
    if keys.ranks is not msgspec.UNSET and (name == "job.json" or _OBJECTS_HEAD.match(bytes(keys.ranks))):
        return Content.JOB
    return Content.FLIGHT_RECORDER if file_names.is_dump_name(name) else Content.UNRECOGNISED


def _recognise_list(name: str, items: list[_Keys]) -> Content:
    if any(item.frames is not msgspec.UNSET and item.profiling_name is msgspec.UNSET for item in items):
        return Content.STACKS
    if any(item.profiling_name is not msgspec.UNSET for item in items):
        return Content.FLIGHT_RECORDER
    if items:
        return Content.UNRECOGNISED
    guess = guess_by_name(name)
    return guess if guess in {Content.FLIGHT_RECORDER, Content.STACKS} else Content.UNRECOGNISED


def _recognise_damaged(name: str, data: bytes) -> Content:
    """A JSON file that cannot be decoded: cut off, JSON lines, or a log that begins like JSON."""
    head = data[:HEAD_BYTES]
    if _DUMP_WORDS.search(head):
        return Content.FLIGHT_RECORDER
    if _STACK_WORDS.search(head):
        return Content.STACKS
    if name == "job.json":
        return Content.JOB
    for schema, content in _SCHEMAS.items():
        if schema in head:
            return content
    return _recognise_lines(name, data)


def _recognise_lines(name: str, data: bytes) -> Content:
    """Text that only begins like JSON, or holds an object a line."""
    if is_gpu_series(data[:HEAD_BYTES]):
        return Content.GPU_SERIES
    if file_names.is_dump_name(name):
        return Content.FLIGHT_RECORDER
    return _recognise_text(name, read_text(data))


def _recognise_text(name: str, text: str) -> Content:
    if file_names.is_kernel_log(name) or (not is_rank_log(text) and looks_like_kernel_log(text)):
        return Content.KERNEL_LOG
    if is_ras_text(text[:HEAD_BYTES]):
        return Content.RANK_LOG if is_rank_log(text) or tells_events(text) else Content.RAS
    if _STACK_TEXT.search(text[:HEAD_BYTES]) and not tells_crash(text[:HEAD_BYTES]):
        return Content.STACKS
    if file_names.is_dump_name(name) and not file_names.is_log_name(name):
        return Content.FLIGHT_RECORDER
    if file_names.is_log_name(name) or is_rank_log(text) or tells_events(text):
        return Content.RANK_LOG
    return Content.STACKS if file_names.is_stacks_name(name) else Content.UNRECOGNISED
