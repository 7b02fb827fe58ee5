"""All that a log tells beyond tracebacks, by the rank that says it. One table of families, each in a file of its own.

COST: 38 MB/s where nothing is found, 4 MB/s where every line is an event (measured). Linear; `MOST_EVENTS` events a log.
"""

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from pardbg.collectors.parsing import c10d_lines, nccl_lines, peer_lines, program_lines
from pardbg.collectors.parsing.log_lines import LineRead, lines_with
from pardbg.collectors.parsing.program_lines import is_survivable
from pardbg.collectors.parsing.progress import goes_on
from pardbg.collectors.parsing.torchrun_report import parse_torchrun_report
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.log_event import LogEvent, LogSeen, OwnFailure

MOST_EVENTS = 50_000
_MOST_SAMPLES = 500
_MOST_LOOKS, _SOON = 50, 16_384  # failures whose next characters are looked at, and how many
_WORDS = (c10d_lines.WORDS, peer_lines.WORDS, nccl_lines.WORDS, program_lines.WORDS)
_FAMILIES: tuple[Callable[[LineRead], LogEvent | None], ...] = (
    c10d_lines.read_c10d,
    nccl_lines.read_nccl,
    peer_lines.read_peer,
    program_lines.read_program,
)
_TELLING = (
    "WorkNCCL(SeqNum=",
    ", last completed ",
    " NCCL INFO ",
    " NCCL WARN ",
    "Root Cause (first observed failure)",
    "monitoredBarrier",
    "Detected mismatch between collectives on ranks",
    "store->get('",
    "watchdog got stuck",
    "[/gloo/transport/",
    '"should dump" flag',
    "torch/distributed/elastic/",
    "srun: error: Node failure on",
    "CANCELLED AT ",
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
    return tuple(
        RankEvents(rank=rank, seen=LogSeen(events=tuple(known.values()), is_cut=is_cut)) for rank, known in by_rank.items()
    )


def _events(text: str, lines: list[LineRead]) -> Iterator[tuple[LineRead, LogEvent]]:
    """Time and text are left for those that are kept."""
    looks_left = _MOST_LOOKS
    for read in lines:
        event = next((event for family in _FAMILIES if (event := family(read)) is not None), None)
        if isinstance(event, OwnFailure) and is_survivable(read.line) and looks_left:
            looks_left -= 1
            event = replace(event, is_survived=event.is_survived or _goes_on(text[read.end : read.end + _SOON]))
        if event is not None:
            yield read, event


def _goes_on(text: str) -> bool:
    """Whether the program trains on: an allocation that failed can be caught, as a search for the batch size does."""
    lines = (line for line in text.splitlines() if not line.startswith("[rank"))
    return any(map(goes_on, lines))
