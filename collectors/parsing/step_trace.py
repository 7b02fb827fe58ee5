"""A step trace: a parquet table with a row for every operation of every rank (contract). Read with pyarrow, where it is there.

Cost: 0.4 s to import pyarrow, in the reader's child alone; 1 s for 100,000 rows. Memory: of a larger table than `MOST_ROWS`
only the steps with the highest numbers are taken.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.evidence import Absence
from pardbg.watchdog.model.members import MAX_WORLD_SIZE
from pardbg.watchdog.model.names import AbsenceReason
from pardbg.watchdog.model.step_trace import StepTrace, TracedOperation

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

HEAD = b"PAR1"
MOST_ROWS = 200_000  # some 40 steps of 16 ranks; 40 MB as tuples
MOST_STORED_ROWS = 600_000  # 5 s, half of what a reader may take
MOST_KINDS = 256
NOT_INSTALLED = "it is a parquet table, and pyarrow, which reads those, is not installed: pip install 'pardbg[traces]'"
_COLUMNS = ("rank", "dp_rank", "stage", "step", "optype", "start_ts", "duration", "seq_id", "mc")
_LARGEST_FOOTER_BYTES = 1024**2
_LONGEST_S = 1e6
_NAME_LENGTH = 64


def is_step_trace(data: bytes) -> bool:
    """Whether bytes are a whole parquet table with the columns of such a trace: most tables beside a job are its data."""
    if not (data.startswith(HEAD) and data.endswith(HEAD)):
        return False
    length = int.from_bytes(data[-2 * len(HEAD) : -len(HEAD)], "little")
    footer = data[-2 * len(HEAD) - min(length, _LARGEST_FOOTER_BYTES) : -2 * len(HEAD)]
    return all(name.encode() in footer for name in ("dp_rank", "optype", "start_ts"))


def parse_step_trace(data: bytes) -> StepTrace | Absence:
    """Reads the table.

    Raises:
        ParseError: if it is none of operations, or damaged.
    """
    try:
        from pyarrow import ArrowException, BufferReader  # noqa: PLC0415 - only where there is such a file
        from pyarrow.parquet import ParquetFile  # noqa: PLC0415
    except ImportError:
        return Absence(reason=AbsenceReason.NOT_INSTALLED, detail=NOT_INSTALLED)
    try:
        table = ParquetFile(BufferReader(data))
        _check(table)
        return _trace(cast("Iterator[dict[str, list[Any]]]", (batch.to_pydict() for batch in _batches(table))))
    except (ArrowException, OSError, ValueError, OverflowError, TypeError) as error:
        raise ParseError(f"a parquet table that cannot be read: {str(error).splitlines()[0]}") from error


def _check(table: "ParquetFile") -> None:
    missing = sorted(set(_COLUMNS) - set(table.schema_arrow.names))
    if missing:
        told = f"a parquet table without the columns {', '.join(missing)}: no step trace"
        raise ParseError(told, remedy=f"a step trace has {', '.join(_COLUMNS)}")
    if table.metadata.num_rows > MOST_STORED_ROWS:
        raise ParseError(f"{table.metadata.num_rows} rows, more than the {MOST_STORED_ROWS} that pardbg reads of a trace")


def _batches(table: "ParquetFile") -> Iterator[Any]:
    return iter(table.iter_batches(batch_size=16_384, columns=list(_COLUMNS), use_threads=False))


def _trace(batches: Iterable[dict[str, list[Any]]]) -> StepTrace:
    kinds: dict[str, int] = {}
    by_step: dict[int, list[TracedOperation]] = {}
    dropped: Counter[int] = Counter()
    held = 0
    for batch in batches:
        for row in zip(*(batch[name] for name in _COLUMNS), strict=True):
            operation = _operation(row, kinds)
            by_step.setdefault(operation.step, []).append(operation)
            held += 1
        while held > MOST_ROWS and len(by_step) > 1:
            oldest = min(by_step)
            dropped[oldest] += 1
            held -= len(by_step.pop(oldest))
    if not by_step:
        raise ParseError("a step trace without a row")
    if held > MOST_ROWS:
        raise ParseError(f"one step has {held} rows, more than the {MOST_ROWS} that pardbg takes")
    if any(operation.chunk > 0 for step in by_step.values() for operation in step):
        raise ParseError("a trace of an interleaved pipeline schedule (mc > 0), whose order is not known to pardbg")
    whole = [by_step[step] for step in sorted(by_step) if step not in dropped]
    return StepTrace(
        kinds=tuple(kinds), operations=tuple(operation for step in whole for operation in step), left_steps=len(dropped)
    )


def _operation(row: Sequence[Any], kinds: dict[str, int]) -> TracedOperation:
    rank, replica, stage, step, kind, start_s, duration_s, number, chunk = row
    places = (rank, replica, stage, step)
    if not all(type(place) is int and 0 <= place < 2**53 for place in places) or max(places[:3]) >= MAX_WORLD_SIZE:
        raise ValueError(f"a row of rank {rank!r}, dp_rank {replica!r}, stage {stage!r}, step {step!r}")
    if not (0 <= duration_s < _LONGEST_S and abs(start_s) < _LONGEST_S and math.isfinite(start_s)):
        raise ValueError(f"an operation that starts at {start_s!r} s and takes {duration_s!r} s")
    index = kinds.setdefault(str(kind)[:_NAME_LENGTH], len(kinds))
    if index >= MOST_KINDS:
        raise ValueError(f"more than {MOST_KINDS} kinds of operations")
    return TracedOperation(rank, replica, stage, step, index, start_s, duration_s, int(number), int(chunk))
