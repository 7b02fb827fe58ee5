"""How processes ended and what they waited for at last, as launchers, schedulers and stores say at the end of a log.

COST: constant: only the last `TAIL_CHARS` are looked at, a search a form. Such words are a log's last ones, or of an earlier
attempt: where it goes on training after them they tell nothing.
"""

from collections.abc import Callable, Iterator

from pardbg.collectors.parsing.last_words import parse_last_words
from pardbg.collectors.parsing.launcher_lines import parse_launcher_ends
from pardbg.collectors.parsing.mpi_endings import parse_mpi_ends
from pardbg.collectors.parsing.progress import goes_on
from pardbg.collectors.parsing.ray_lines import parse_ray_ends
from pardbg.collectors.parsing.slurm_tasks import parse_task_ends
from pardbg.collectors.parsing.stall_lines import parse_stalls
from pardbg.collectors.parsing.store_lines import parse_store_waits
from pardbg.watchdog.model.log_event import LogEvent

TAIL_CHARS = 256 * 1024
_STILL_WRITTEN = 10  # lines of other ranks that may still come after the end of one
_READERS: tuple[Callable[[str], Iterator[tuple[int, LogEvent]]], ...] = (
    parse_launcher_ends,
    parse_mpi_ends,
    parse_task_ends,
    parse_store_waits,
    parse_ray_ends,
    parse_stalls,
    parse_last_words,
)


def parse_endings(text: str) -> tuple[LogEvent, ...]:
    """What the end of a log tells, in its order, each thing once."""
    tail = text[-TAIL_CHARS:]
    told = sorted((told for read in _READERS for told in read(tail)), key=lambda told: told[0])
    after = _goes_on_until(tail, told[0][0]) if told else 0
    return tuple(dict.fromkeys(event for end, event in told if end > after))


def _goes_on_until(tail: str, start: int) -> int:
    """Up to where the log shows a job that trains, or starts anew; before that nothing is the end."""
    steps: list[int] = []
    at = start
    for line in tail[start:].splitlines(keepends=True):
        at += len(line)
        if "Starting worker group" in line:
            steps += [at] * _STILL_WRITTEN
        elif goes_on(line):
            steps.append(at)
    return steps[-1] if len(steps) >= _STILL_WRITTEN else 0
