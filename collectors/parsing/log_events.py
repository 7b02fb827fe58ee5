"""All that a log tells beyond tracebacks, by the rank that says it. One table of families, each in a file of its own.

COST: 38 MB/s where nothing is found, 4 MB/s where every line is an event (measured). Linear; `MOST_EVENTS` events a log.
"""

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from pardbg.collectors.parsing import c10d_lines, crash_lines, nccl_lines, peer_lines, program_lines
from pardbg.collectors.parsing.deepspeed_end import find_deepspeed_end
from pardbg.collectors.parsing.log_endings import parse_endings
from pardbg.collectors.parsing.log_lines import LineRead, lines_with, read_line
from pardbg.collectors.parsing.program_lines import is_survivable
from pardbg.collectors.parsing.progress import goes_on, read_bar
from pardbg.collectors.parsing.torchrun_report import parse_torchrun_report
from pardbg.collectors.parsing.wrapped_lines import head_of, tails_of
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.log_event import LogEvent, LogSeen, OwnFailure, TrainingDone

MOST_EVENTS = 50_000
_MOST_SAMPLES = 500
_MOST_LOOKS, _SOON = 50, 16_384  # failures whose next characters are looked at, and how many; as many ends of training
_WORDS = (c10d_lines.WORDS, peer_lines.WORDS, nccl_lines.WORDS, program_lines.WORDS, crash_lines.WORDS)
_FAMILIES: tuple[Callable[[LineRead], LogEvent | None], ...] = (
    c10d_lines.read_c10d,
    nccl_lines.read_nccl,
    peer_lines.read_peer,
    program_lines.read_program,
    crash_lines.read_crash,
)
_TELLING = (
    "WorkNCCL(SeqNum=",
    "WorkNCCL(OpType=",
    ", last completed ",
    " NCCL INFO ",
    " NCCL WARN ",
    "Duplicate GPU detected",
    "Root Cause (first observed failure)",
    "monitoredBarrier",
    "Detected mismatch between collectives on ranks",
    "store->get('",
    "watchdog got stuck",
    "[/gloo/transport/",
    '"should dump" flag',
    "torch/distributed/elastic/",
    "Fatal Python error: ",
    "srun: error: Node failure on",
    "CANCELLED AT ",
    " noticed that process rank ",
    "BAD TERMINATION OF ONE OF YOUR ",
    " in store based barrier ",
    ":sigkill_handler] ",
    "(raylet) [",
    "[missing ranks: ",
    "Missing ranks:\n",
)


class RankEvents(Noun, frozen=True, kw_only=True):
    """The events of one rank, or of nobody; those of launchers are nobody's, though they name ranks."""

    rank: int | None
    seen: LogSeen


def tells_events(text: str) -> bool:
    """Whether a text shows what only logs of ranks and of their launchers show."""
    return any(word in text for word in _TELLING)


def parse_log_events(text: str) -> tuple[RankEvents, ...]:
    """Finds all events of a log, by rank, each rank's in their order and what is said twice once."""
    lines, is_cut = lines_with(text, _WORDS)
    samples, _ = lines_with(text, (nccl_lines.SAMPLED_WORDS,), _MOST_SAMPLES)
    by_rank: dict[int | None, dict[LogEvent, LogEvent]] = {}
    count = 0
    for read, event in _events(text, [*lines, *samples]):
        known = by_rank.setdefault(event.rank, {})
        if event in known:
            continue
        known[event] = replace(event, at_ns=read.at_ns, text=read.text)
        count += 1
        if count >= MOST_EVENTS:
            is_cut = True
            break
    launched = parse_torchrun_report(text)
    if launched:
        by_rank.setdefault(None, {}).update((failure, failure) for failure in launched)
    endings = parse_endings(text)
    if endings:  # of launchers and stores: the ranks that they name did not write them
        by_rank.setdefault(None, {}).update((ending, ending) for ending in endings)
    if (done := find_deepspeed_end(text)) is not None:
        by_rank.setdefault(None, {})[done] = done
    return tuple(
        RankEvents(rank=rank, seen=LogSeen(events=tuple(known.values()), is_cut=is_cut)) for rank, known in by_rank.items()
    )


def _events(text: str, lines: list[LineRead]) -> Iterator[tuple[LineRead, LogEvent]]:
    """Time and text are left for those that are kept."""
    looks_left = ends_left = _MOST_LOOKS
    for line in lines:
        read = head_of(text, line)
        event = _event(read)
        if event is None:
            read, event = next(((longer, event) for longer in tails_of(text, read) if (event := _event(longer))), (read, None))
        if isinstance(event, OwnFailure) and (is_survivable(read.line) or event.signal) and looks_left:
            looks_left -= 1
            event = replace(event, is_survived=event.is_survived or _goes_on(text, read.end))
        if isinstance(event, TrainingDone):  # what is said over and over is the end of an epoch
            event = replace(event, is_passed=not ends_left or _goes_on(text, read.end, read))
            ends_left = max(0, ends_left - 1)
        if event is not None:
            yield read, event


def _event(read: LineRead) -> LogEvent | None:
    return next((event for family in _FAMILIES if (event := family(read)) is not None), None)


def _goes_on(text: str, end: int, writer: LineRead | None = None) -> bool:
    """Whether the program trains on after a line: an allocation that failed can be caught, and a child may have crashed.

    By the lines of a ``writer``, where there is one: logs of several ranks are not in order.
    """
    before = filter(None, map(read_bar, text[max(0, end - _SOON) : end].splitlines()))
    bars = {total: done for done, total in before}
    lines = text[end : end + _SOON].splitlines()
    if writer is None:
        return any(goes_on(line, bars) for line in lines if not line.startswith("[rank"))
    reads = map(read_line, lines)
    return any(goes_on(read.text, bars) for read in reads if read.rank == writer.rank)
