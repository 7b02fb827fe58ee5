"""Step traces as files: parquet tables of operations, and traces of torch.profiler."""

import io
import json
import sys
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import Table
from pyarrow.parquet import write_table

from pardbg.collectors.parsing import step_trace
from pardbg.collectors.parsing.kernel_times import parse_kernel_times
from pardbg.collectors.parsing.recognise import Content, Portion, choose_portion, parse_file, recognise
from pardbg.collectors.parsing.step_trace import parse_step_trace
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.evidence import Absence
from pardbg.watchdog.model.names import AbsenceReason
from pardbg.watchdog.model.step_trace import KernelTimes, StepTrace, TracedOperation

ROW = {
    "dp_rank": 0,
    "stage": 1,
    "rank": 4,
    "step": 7,
    "optype": "forward-compute",
    "start_ts": 0.5,
    "duration": 0.25,
    "seq_id": 2,
    "mc": 0,
    "mb_id": 2,
    "gmc": 1,
}


def table(*rows: dict[str, Any]) -> bytes:
    """A parquet file of these rows."""
    sink = io.BytesIO()
    write_table(Table.from_pylist(list(rows)), sink)
    return sink.getvalue()


def test_row_is_an_operation() -> None:
    data = table(ROW)

    assert recognise("trace_17.parquet", data) is Content.STEP_TRACE
    assert choose_portion(data) is Portion.TABLE
    (found,) = parse_file("trace_17.parquet", data).found
    assert found.rank is None
    assert found.observation == StepTrace(
        kinds=("forward-compute",), operations=(TracedOperation(4, 0, 1, 7, 0, 0.5, 0.25, 2, 0),)
    )


def test_tables_of_other_things_are_no_evidence() -> None:
    others = (table({"text": "a training sample", "rank": 1}), table(ROW)[:-1])
    for data in (*others, b"PAR1", b"PAR1PAR1", b"PAR1\xff\xff\xff\xffPAR1"):
        assert parse_file("train-00001.parquet", data).content is Content.UNRECOGNISED


def test_of_a_table_that_is_too_large_the_newest_steps_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_trace, "MOST_ROWS", 2)
    read = parse_step_trace(table(*({**ROW, "step": step} for step in (3, 1, 2))))

    assert isinstance(read, StepTrace)
    assert ([operation.step for operation in read.operations], read.left_steps) == ([2, 3], 1)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        pytest.param(b"PAR1" + b"\0" * 99, "cannot be read", id="damaged"),
        pytest.param(table(ROW)[:-30], "cannot be read", id="cut"),
        pytest.param(table({"name": "x"}), "without the columns", id="another-table"),
        pytest.param(table({**ROW, "rank": -3}), "rank -3", id="negative-rank"),
        pytest.param(table({**ROW, "rank": 2**40}), "rank 1099511627776", id="huge-rank"),
        pytest.param(table({**ROW, "duration": float("nan")}), "takes nan s", id="no-number"),
        pytest.param(table({**ROW, "duration": None}), "cannot be read", id="null"),
        pytest.param(table(ROW, {**ROW, "stage": 0, "mc": 1}), "interleaved", id="interleaved"),
        pytest.param(table(ROW).replace(b"forward", b"\xff\xff\xff\xff\xff\xff\xff"), "cannot be read", id="no-text"),
    ],
)
def test_hostile_tables_are_refused_in_one_line(data: bytes, told: str) -> None:
    with pytest.raises(ParseError, match=told) as raised:
        parse_step_trace(data)
    assert "\n" not in str(raised.value)


def test_without_pyarrow_the_command_that_installs_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    read = parse_step_trace(b"PAR1")

    assert isinstance(read, Absence)
    assert read.reason is AbsenceReason.NOT_INSTALLED
    assert "pip install 'pardbg[traces]'" in read.detail


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=200), st.integers(0, 3000))
def test_no_damage_to_a_table_breaks_its_reader(noise: bytes, place: int) -> None:
    good = table(ROW)
    place %= len(good)
    data = good[:place] + noise + good[place + len(noise) :]
    with suppress(ParseError):
        assert isinstance(parse_step_trace(data), StepTrace)


def event(name: str, category: str, begin_s: float, seconds: float) -> dict[str, Any]:
    """One that has a duration."""
    return {"ph": "X", "name": name, "cat": category, "ts": begin_s * 1e6, "dur": seconds * 1e6, "args": {"stream": 7}}


PROFILE = {
    "schemaVersion": 1,
    "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 4},
    "traceEvents": [
        {"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "python"}},
        event("ProfilerStep#5", "user_annotation", 10.0, 1.0),
        event("ProfilerStep#5", "gpu_user_annotation", 10.1, 0.7),
        event("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", "user_annotation", 10.0, 0.1),
        event("Memcpy HtoD (Pinned -> Device)", "gpu_memcpy", 10.1, 0.05),
        event("Memcpy DtoD (Device -> Device)", "gpu_memcpy", 10.2, 0.05),
        event("sm90_gemm", "kernel", 10.2, 0.3),
        event("elementwise", "kernel", 10.4, 0.2),
        event("ncclDevKernel_AllReduce_Sum_f32_RING_LL", "kernel", 10.6, 0.25),
        event("sm90_gemm", "kernel", 99.0, 0.3),
    ],
}


def test_profile_tells_its_rank_and_what_each_step_was_spent_with() -> None:
    data = json.dumps(PROFILE).encode()

    assert recognise("trace.json", data) is Content.KERNEL_TIMES
    (found,) = parse_file("trace.json", data).found
    assert found.rank == 3
    assert isinstance(found.observation, KernelTimes)
    (step,) = found.observation.steps
    assert (step.step, step.span_s) == (5, 1.0)
    spent = (step.compute_s, step.communication_s, step.copying_s, step.loading_s)
    assert spent == pytest.approx((0.4, 0.25, 0.05, 0.1))


@pytest.mark.parametrize(
    ("events", "told"),
    [
        pytest.param(PROFILE["traceEvents"][:1], "holds metadata and no kernel", id="C110"),  # type: ignore[index]
        pytest.param([event("aten::mm", "cpu_op", 1.0, 1.0)], "holds operations of the CPU and no kernel", id="cpu"),
        pytest.param([], "holds metadata and no kernel", id="nothing"),
    ],
)
def test_profile_without_kernels_is_empty_and_says_so(events: list[dict[str, Any]], told: str) -> None:
    rank, seen = parse_kernel_times(json.dumps({"traceEvents": events}).encode())

    assert rank is None
    assert isinstance(seen, Absence)
    assert seen.reason is AbsenceReason.EMPTY
    assert told in seen.detail


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 2000), st.sampled_from([b"", b"1e999", b'"x"', b"-1", b"[]", b"null", b"\xff"]))
def test_no_damage_to_a_profile_breaks_its_reader(place: int, noise: bytes) -> None:
    good = json.dumps(PROFILE).encode()
    place %= len(good)
    data = good[:place] + noise + good[place + max(1, len(noise)) :]
    with suppress(ParseError):
        rank, seen = parse_kernel_times(data)
        assert rank is None or rank >= 0
        assert isinstance(seen, KernelTimes | Absence)
