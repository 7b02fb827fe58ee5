"""Stacks of py-spy (JSON, text of three generations) and of faulthandler."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pardbg.collectors.parsing.stacks import KEPT_LOCALS, parse_stacks
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.evidence import Stack, StackFrame, Thread

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
