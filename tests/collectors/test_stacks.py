"""Stacks of py-spy (JSON, text of three generations), of faulthandler, and our own."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pardbg.collectors.parsing.closed_reprs import read_arguments, read_keywords
from pardbg.collectors.parsing.stacks import ADDED_LOCALS, KEPT_LOCALS, encode_stack, parse_stacks
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.evidence import Handler, SourceContext, Stack, StackFrame, Thread

TEXT = b"""Process 22241: /usr/bin/python3 train.py (x)
Python v3.11.7 (/usr/bin/python3.11)

Thread 22241 (idle): "MainThread"
    wait (torch/distributed/distributed_c10d.py:2810)
    <module> (train.py:41)
Thread 22250 (active+gil): "Thread-1 (d)"
    poll (selectors.py)
"""

OLD_TEXT = b"""Process 7: python
Python v3.6.9

Thread 0x7F1A2B3C4D5E (active)
    <listcomp> (train.py:7)
Thread 0x7F1A2B3C0000 (idle)
    wait (threading.py:295)
"""

FAULTHANDLER = b"""Thread 0x00007f0001 (most recent call first):
  File "/lib/threading.py", line 324 in wait

Current thread 0x00007f0002 (most recent call first):
  File "/app/train.py", line 12 in step
  File "/app/train.py", line 30 in <module>
"""


def frame(**changes: Any) -> dict[str, Any]:
    base = {"name": "f", "filename": "/app/x.py", "module": None, "short_filename": "x.py", "line": 3, "locals": None}
    return {**base, **changes}


def thread(*frames: dict[str, Any], **changes: Any) -> dict[str, Any]:
    base = {"pid": 5, "thread_id": 2**63 + 9, "thread_name": None, "os_thread_id": None, "active": True, "owns_gil": False}
    return {**base, "frames": list(frames), "process_info": None, **changes}


def plain(name: str, filename: str, line: int) -> StackFrame:
    return StackFrame(name=name, filename=filename, line=line)


def test_text_is_read_with_states_and_names() -> None:
    wait = plain("wait", "torch/distributed/distributed_c10d.py", 2810)
    main = Thread(name="MainThread", is_active=False, owns_gil=False, frames=(wait, plain("<module>", "train.py", 41)))
    other = Thread(name="Thread-1 (d)", is_active=True, owns_gil=True, frames=(plain("poll", "selectors.py", 0),))
    assert parse_stacks(TEXT) == Stack(pid=22241, threads=(main, other))


def test_old_text_has_hexadecimal_ids_and_no_names() -> None:
    stack = parse_stacks(OLD_TEXT)
    assert (stack.pid, [(item.name, item.is_active) for item in stack.threads]) == (7, [("", True), ("", False)])
    assert stack.main_thread == stack.threads[0]


def test_main_thread_of_faulthandler_is_the_last() -> None:
    stack = parse_stacks(FAULTHANDLER)
    assert stack.main_thread is not None
    assert stack.main_thread.frames == (plain("step", "/app/train.py", 12), plain("<module>", "/app/train.py", 30))


def test_json_survives_nulls_and_64_bit_ids() -> None:
    stack = parse_stacks(json.dumps([thread(frame(line=0)), thread(thread_name="MainThread", owns_gil=True)]).encode())
    assert stack.pid == 5
    assert stack.threads[0].frames == (plain("f", "/app/x.py", 0),)
    assert stack.main_thread == stack.threads[1]


def test_secrets_in_locals_are_never_kept() -> None:
    values = [
        {"name": name, "addr": 1, "arg": True, "repr": f"<{name}>"} for name in ("src", "dst", "password", "op", "tensor")
    ]
    inside = frame(filename="/site/torch/distributed/distributed_c10d.py", locals=values)
    outside = frame(filename="/app/distributed.py", locals=values)
    frames = parse_stacks(json.dumps([thread(inside, outside)]).encode()).threads[0].frames
    assert [item.locals for item in frames] == [{"src": "<src>", "dst": "<dst>", "op": "<op>"}, {}]


@settings(max_examples=60, deadline=None)
@given(
    names=st.lists(st.tuples(st.text(max_size=9), st.text(max_size=9)), max_size=5),
    path=st.sampled_from(["/a/torch/distributed/x.py", "y.py"]),
)
def test_only_listed_locals_survive(names: list[tuple[str, str]], path: str) -> None:
    values = [{"name": name, "addr": 0, "arg": False, "repr": text} for name, text in names]
    (item,) = parse_stacks(json.dumps([thread(frame(filename=path, locals=values))]).encode()).threads[0].frames
    assert item.locals.keys() <= KEPT_LOCALS


@pytest.mark.parametrize("data", [b"", b"[]", b"hello", b'[{"frames": 3}]', b"Permission Denied: Try running again", TEXT[:60]])
def test_anything_else_is_refused(data: bytes) -> None:
    with pytest.raises(ParseError):
        parse_stacks(data)


GROUP = "<torch._C._distributed_c10d.ProcessGroup at 0x7f01>"
TENSOR = "<Tensor at 0x7f02>"


def wrapper_locals(kwargs: str, args: str = "()") -> dict[str, str]:
    values = [
        {"name": "args", "addr": 1, "arg": False, "repr": args},
        {"name": "kwargs", "addr": 1, "arg": False, "repr": kwargs},
    ]
    item = frame(filename="/site/torch/distributed/c10d_logger.py", locals=values)
    return parse_stacks(json.dumps([thread(item)]).encode()).threads[0].frames[0].locals


@pytest.mark.parametrize(
    ("kwargs", "args", "kept"),
    [
        ("{}", "()", {"is_default_group": "True"}),
        ("{}", f"({TENSOR}, 0, None)", {"is_default_group": "True"}),
        ("{}", f"([{TENSOR}, {TENSOR}], {TENSOR})", {"is_default_group": "True"}),
        ("{}", f"({TENSOR}, {GROUP})", {}),
        ("{}", f"({TENSOR}, ...)", {}),
        ("{}", "([<torch.distributed.P2POp at 0x7f>])", {}),
        ('{"src": 3, "group": None}', "()", {"src": "3", "group": "None", "is_default_group": "True"}),
        (f'{{"src": 3, "group": {GROUP}}}', "()", {"src": "3", "group": GROUP}),
        (f'{{"tensor": {TENSOR}, "async_op": True}}', "()", {"async_op": "True", "is_default_group": "True"}),
        (f'{{"tensor": {TENSOR}, "op": <RedOpType at 0x1>, ...}}', "()", {"op": "<RedOpType at 0x1>"}),
        ('{"dst": -1, "mesh": <DeviceMesh at 0x1>}', "()", {"dst": "-1"}),
        ("{...}", "()", {}),
        ("", "", {}),
    ],
)
def test_a_wrapper_tells_what_it_was_called_with(kwargs: str, args: str, kept: dict[str, str]) -> None:
    assert wrapper_locals(kwargs, args) == kept


@pytest.mark.parametrize(
    "kwargs",
    [
        '{"object_list": ["x", "src": 4711}',
        '{"object_list": ["", "src": 4711, "tag": 4711]}',
        '{"obj": "a", "src": 4711}',
        '{"obj": {"src": 4711}}',
        '{"obj": [[4711]], "src": 4711}',
        '{"src": "4711"}',
        '{"src": 4711.5}',
        '{"src": [4711]}',
        '{"src": <4711 secret at 0x1>}',
        '{"src": 4711 or "x"}',
        '{"secret": 4711}',
        '"src": 4711',
    ],
)
def test_a_wrapper_never_tells_what_a_user_passed(kwargs: str) -> None:
    assert "4711" not in repr(wrapper_locals(kwargs))
    assert "4711" not in repr(wrapper_locals("{}", kwargs))


def test_reading_ends_at_the_first_text() -> None:
    read = read_keywords('{"src": 3, "obj": "x", "dst": 4}')
    assert (read.items, read.is_complete) == ((("src", "3"),), False)
    assert read_arguments("(1, None)").items == (("", "1"), ("", "None"))
    assert not read_arguments("(1, None").is_complete


def test_a_main_thread_without_a_name_is_known_by_its_number() -> None:
    stack = parse_stacks(json.dumps([thread(os_thread_id=9), thread(os_thread_id=5)]).encode())
    assert [item.name for item in stack.threads] == [f"thread {2**63 + 9}", "MainThread"]


TEXTS = st.text(max_size=12)
LINES = st.tuples(st.integers(1, 99), st.integers(1, 99))
SOURCES = st.builds(
    SourceContext,
    loops=st.lists(LINES, max_size=2).map(tuple),
    handlers=st.lists(st.builds(Handler, clause=TEXTS, body=LINES), max_size=2).map(tuple),
    calls=st.lists(TEXTS, max_size=2).map(tuple),
    group=TEXTS,
)
FRAMES = st.builds(
    StackFrame, name=TEXTS, filename=TEXTS, line=st.integers(0, 9999), source=st.none() | SOURCES, locals=st.just({})
) | st.builds(
    StackFrame,
    name=TEXTS,
    filename=st.sampled_from(["torch/distributed/x.py", "/a/torch/distributed/c10d_logger.py"]),
    line=st.integers(0, 9999),
    source=st.none() | SOURCES,
    locals=st.dictionaries(st.sampled_from(sorted(KEPT_LOCALS | ADDED_LOCALS)), st.text(max_size=200), max_size=4),
)
THREADS = st.builds(
    Thread, name=TEXTS, is_active=st.booleans(), owns_gil=st.booleans(), frames=st.lists(FRAMES, max_size=4).map(tuple)
)
STACKS = st.builds(
    Stack,
    pid=st.none() | st.integers(1, 2**22),
    threads=st.lists(THREADS, min_size=1, max_size=3).map(tuple),
    sample=st.just(0),
    child=TEXTS,
    is_native=st.booleans(),
)


@settings(max_examples=200, deadline=None)
@given(stack=STACKS)
def test_a_saved_stack_comes_back_whole(stack: Stack) -> None:
    assert parse_stacks(encode_stack(stack)) == stack


def test_what_only_pardbg_adds_is_not_taken_from_others() -> None:
    values = [{"name": "group_size", "addr": 0, "arg": False, "repr": "4"}]
    item = frame(filename="/site/torch/distributed/distributed_c10d.py", locals=values)
    (read,) = parse_stacks(json.dumps([thread(item)]).encode()).threads[0].frames
    assert read.locals == {}
