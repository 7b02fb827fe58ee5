"""What a scan saves of looks and stacks is what `analyze` reads."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pardbg.collectors.files import collect_files
from pardbg.collectors.parsing.process import encode_process, parse_process
from pardbg.collectors.parsing.recognise import Content, recognise
from pardbg.collectors.parsing.stacks import encode_stack
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.evidence import Absence, Stack, StackFrame, Thread
from pardbg.watchdog.model.names import AbsenceReason, CollectorName
from pardbg.watchdog.model.process import ChildProcess, ProcessSample

CHILD = ChildProcess(pid=8, name="pt_data_worker", state="S", wait_channel="pipe_read", system_call="read", cpu_s=0.5)
LOOK = ProcessSample(
    pid=7,
    started_ticks=123,
    state="S",
    wait_channel="futex_do_wait",
    system_call="futex",
    blocked_on="socket to 10.0.0.7:29500",
    is_store=True,
    voluntary_switches=3,
    moved_bytes=2**40,
    cpu_s=1.5,
    still_s=12.25,
    children=(CHILD,),
    oom_kills=0,
    uses_device=True,
)
OPTIONAL = st.none() | st.text(max_size=9)
LOOKS = st.builds(
    ProcessSample,
    sample=st.integers(0, 9),
    pid=st.integers(1, 2**22),
    started_ticks=st.integers(0, 2**50),
    state=st.text(max_size=1),
    wait_channel=OPTIONAL,
    blocked_on=OPTIONAL,
    moved_bytes=st.none() | st.integers(0, 2**62),
    still_s=st.none() | st.floats(0, 1e9),
    children=st.lists(
        st.builds(ChildProcess, pid=st.integers(1, 9), name=st.text(max_size=9), state=st.just("S")), max_size=2
    ).map(tuple),
)


def stack(child: str = "", *, is_native: bool = False) -> Stack:
    frames = (StackFrame(name="f", filename="/app/x.py", line=3),)
    thread = Thread(name="MainThread", is_active=False, owns_gil=False, frames=frames)
    return Stack(pid=7, threads=(thread,), child=child, is_native=is_native)


@settings(max_examples=100, deadline=None)
@given(look=LOOKS)
def test_a_saved_look_comes_back_whole(look: ProcessSample) -> None:
    assert parse_process(encode_process(look)) == look


def test_saved_looks_are_read_with_rank_and_sample(tmp_path: Path) -> None:
    for sample in (0, 1):
        (tmp_path / f"process_rank3_s{sample}.json").write_bytes(encode_process(replace(LOOK, still_s=float(sample))))
    collected = collect_files([tmp_path])
    assert [(item.source, item.rank) for item in collected.evidence] == [(CollectorName.HOST, 3)] * 2
    assert [item.observation for item in collected.evidence] == [
        replace(LOOK, sample=sample, still_s=float(sample)) for sample in (0, 1)
    ]
    assert collected.unrecognised == ()


def test_stacks_of_a_rank_and_of_its_children_stand_side_by_side(tmp_path: Path) -> None:
    saved = {
        "stack_rank3_child8_s1.json": stack("pt_data_worker 8"),
        "stack_rank3_child9_s1.json": stack("pt_data_worker 9"),
        "stack_rank3_native_s1.json": stack(is_native=True),
        "stack_rank3_s1.json": stack(),
    }
    for name, content in saved.items():
        (tmp_path / name).write_bytes(encode_stack(content))
    collected = collect_files([tmp_path])
    assert [item.rank for item in collected.evidence] == [3] * 4
    assert [item.observation for item in collected.evidence] == [replace(content, sample=1) for content in saved.values()]


def test_of_two_looks_that_claim_one_sample_the_newer_stays(tmp_path: Path) -> None:
    (tmp_path / "process_rank3.json").write_bytes(encode_process(LOOK))
    (tmp_path / "process_rank3_s0.json").write_bytes(encode_process(LOOK))
    found = [item.observation for item in collect_files([tmp_path]).evidence]
    assert sum(isinstance(item, Absence) and item.reason is AbsenceReason.DUPLICATE_RANK for item in found) == 1


@pytest.mark.parametrize(
    ("name", "data", "content"),
    [
        ("anything.json", encode_process(LOOK), Content.PROCESS),
        ("process_rank3_s0.json", encode_process(LOOK)[:60], Content.PROCESS),
        ("process_rank3_s0.json", b"", Content.PROCESS),
        ("report.json", b'{"schema": "pardbg.report/1", "process": {}}', Content.UNRECOGNISED),
    ],
)
def test_saved_looks_are_recognised_by_content(name: str, data: bytes, content: Content) -> None:
    assert recognise(name, data) is content


@pytest.mark.parametrize("data", [b"", b"{}", b'{"schema": "pardbg.process/1"}', b"[]", encode_process(LOOK)[:-9]])
def test_anything_else_is_refused(data: bytes) -> None:
    with pytest.raises(ParseError):
        parse_process(data)
