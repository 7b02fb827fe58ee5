"""What a probe keeps, whole, torn, cut and hostile: rank.json, the page, groups.jsonl."""

import itertools
import json
from contextlib import suppress

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pardbg.collectors.parsing.group_file import parse_groups
from pardbg.collectors.parsing.page import MOST_COPIES, parse_page
from pardbg.collectors.parsing.rank_file import RANK_SCHEMA, parse_rank_file
from pardbg.collectors.probe.page_format import (
    END_AT_ONCE,
    END_EXCEPTION,
    END_RETURNED,
    PAGE_SIZE,
    MemoryRecord,
    PhaseRecord,
    StepRecord,
)
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.heartbeat import EndingKind, Heartbeat
from pardbg.watchdog.model.recording import GroupConfig
from tests.collectors.probe_pages import ending, page_of, torn

STEP = StepRecord(step=12, ended_ns=10**18, last_ns=500_000_000, longest_ns=2_000_000_000, hook_count=40, own_ns=1_000_000)
PHASE = PhaseRecord(since_ns=10**18 + 1, depth=1, name=b"checkpoint")
MEMORY = MemoryRecord(at_ns=1, allocated_bytes=100, reserved_bytes=200, retry_count=3)
RANK = {"schema": RANK_SCHEMA, "rank": 3, "pid": 7, "started_ticks": 99, "boot_id": "b", "stack_signal": 40, "problems": []}


def rank_file(**changes: object) -> bytes:
    return json.dumps(RANK | changes).encode()


def test_unknown_keys_and_nulls_of_a_rank_file_are_allowed() -> None:
    found = parse_rank_file(rank_file(torch=None, attempt=None, problems=None, environment=None, later={"a": [1]}))

    assert (found.rank, found.pid, found.started_ticks, found.stack_signal) == (3, 7, 99, 40)
    assert (found.torch, found.problems, found.environment) == (None, (), {})


def test_of_an_environment_only_the_names_that_identify_a_rank_are_kept() -> None:
    given_names = {"RANK": "3", "PARDBG_JOB": "j", "AWS_SECRET": "hunter2", "HOME": "/root", "MASTER_ADDR": "a\x1b[2J"}

    assert parse_rank_file(rank_file(environment=given_names)).environment == {
        "RANK": "3",
        "PARDBG_JOB": "j",
        "MASTER_ADDR": "a\\x1b[2J",
    }


@pytest.mark.parametrize("number", [9, 15, 19, 33, 65, 2**40])
def test_only_a_real_time_signal_can_be_one_to_ask_by(number: int) -> None:
    assert parse_rank_file(rank_file(stack_signal=number)).stack_signal is None


@pytest.mark.parametrize("path", ["relative", "/a\x1b[2J", "/a\nb", "/" + "x" * 5000])
def test_path_that_cannot_be_shown_is_none(path: str) -> None:
    assert parse_rank_file(rank_file(last_dump=path)).last_dump is None


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"{}", rank_file(rank=-1), rank_file(pid=2**70), rank_file(schema="pardbg.rank/2"), b"[" * 10**5, b'{"a'],
)
def test_what_is_no_rank_file_is_refused(data: bytes) -> None:
    with pytest.raises(ParseError):
        parse_rank_file(data)


def test_page_says_step_phase_and_memory() -> None:
    assert parse_page([page_of(STEP, PHASE, MEMORY)], 7) == Heartbeat(
        step=12,
        step_ended_ns=10**18,
        step_s=0.5,
        longest_step_s=2.0,
        phase="checkpoint",
        phase_since_ns=10**18 + 1,
        allocated_bytes=100,
        reserved_bytes=200,
        retry_count=3,
        own_s=0.001,
        hook_count=40,
    )


def test_page_without_records_says_nothing() -> None:
    assert parse_page([page_of()]) == Heartbeat()


def test_phase_that_is_over_has_no_beginning() -> None:
    assert parse_page([page_of(PHASE._replace(name=b"", depth=0))]) == Heartbeat()


def test_torn_record_is_looked_for_in_the_next_copy() -> None:
    whole = page_of(STEP, PHASE)
    copies = iter([torn(whole, STEP._replace(step=13)), torn(whole, PHASE._replace(since_ns=9)), whole, b"never asked for"])

    assert parse_page(copies).step == 12
    assert next(copies) == b"never asked for"


def test_record_that_is_torn_in_every_copy_is_refused() -> None:
    copies = itertools.repeat(torn(page_of(STEP), STEP._replace(step=13)))
    with pytest.raises(ParseError, match="torn"):
        parse_page(itertools.islice(copies, MOST_COPIES + 1))


@pytest.mark.parametrize("copies", [[], [b""], [bytes(PAGE_SIZE)], [page_of(STEP)[:-1]], [page_of(STEP, pid=8)]])
def test_what_is_no_page_of_this_process_is_refused(copies: list[bytes]) -> None:
    with pytest.raises(ParseError):
        parse_page(copies, 7)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [(END_RETURNED, EndingKind.RETURNED), (END_AT_ONCE, EndingKind.AT_ONCE), (END_EXCEPTION, EndingKind.EXCEPTION)],
)
def test_page_says_how_the_process_ended(kind: int, expected: EndingKind) -> None:
    found = parse_page([page_of(ending(kind, code=3, oom_kills=0))]).ending

    assert found is not None
    assert (found.kind, found.at_ns, found.code, found.oom_kills, found.where) == (expected, 5, 3, 0, "/app/train.py:7 step")


def test_what_an_ending_does_not_know_is_none() -> None:
    found = parse_page([page_of(ending(END_RETURNED, at_ns=0))]).ending

    assert found is not None
    assert (found.at_ns, found.code, found.oom_kills) == (None, None, None)
    assert parse_page([page_of(STEP, ending(77))]) == parse_page([page_of(STEP)])


def test_exception_loses_its_secrets_and_is_judged() -> None:
    own = parse_page([page_of(ending(END_EXCEPTION, b"ValueError: password=hunter2 is wrong\nmore"))]).ending
    lost = parse_page(
        [page_of(ending(END_EXCEPTION, b"RuntimeError: [../pair.cc:534] Connection closed by peer [::1]:4"))]
    ).ending

    assert own is not None
    assert lost is not None
    assert (own.text, own.is_consequence) == ("ValueError: password=*** is wrong", False)
    assert lost.is_consequence


def line(name: str = "0", runs: object = ((0, 1, 4),), **more: object) -> bytes:
    return (
        json.dumps({"name": name, "desc": "default_pg", "backend": "gloo", "runs": runs, "created_ns": 1, **more}).encode()
        + b"\n"
    )


def test_groups_come_in_the_order_in_which_they_were_made() -> None:
    found = parse_groups(line() + line("1", [[0, 2, 2]], desc="dp") + line("1", [[1, 2, 2], [0, 1, 1]], desc=None))

    assert [(group.name, group.desc, group.ranks) for group in found] == [
        ("0", "default_pg", (0, 1, 2, 3)),
        ("1", "dp", (0, 2)),
        ("1", "", (1, 3, 0)),
    ]


@pytest.mark.parametrize(
    "bad",
    [
        line()[:-9],
        b"\xff\n",
        b"[]\n",
        line(""),
        line("x", []),
        line("x", [[0, 1, 10**9]]),
        line("x", [[-1, 1, 2]]),
        line("x", [[1, -1, 5]]),
        line("x", [[1, 0, 5]]),
        line("x", [[199_999, 1, 2]]),
        line("x", "0-3"),
    ],
)
def test_bad_line_loses_only_itself(bad: bytes) -> None:
    good = (GroupConfig(name="0", desc="default_pg", runs=((0, 1, 4),)),)

    assert parse_groups(line() + bad) == good
    assert parse_groups(bad.rstrip(b"\n") + b"\n" + line()) == good


def test_groups_of_more_members_than_any_job_has_are_refused() -> None:
    with pytest.raises(ParseError):
        parse_groups(line("x", [[0, 1, 200_000]]) * 65)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=300), st.integers(0, 2))
@example(b'{"schema": "pardbg.rank/1", "host": "\\ud800"}', 0)
def test_bytes_of_any_kind_end_in_a_value_or_a_parse_error(data: bytes, kind: int) -> None:
    parse = (parse_rank_file, lambda raw: parse_page([raw]), parse_groups)[kind]
    with suppress(ParseError):
        parse(data)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.integers(0, PAGE_SIZE - 1), st.integers(0, 255)), max_size=6))
def test_damaged_page_ends_in_a_value_or_a_parse_error(changes: list[tuple[int, int]]) -> None:
    page = bytearray(page_of(STEP, PHASE, MEMORY, ending(END_EXCEPTION, b"ValueError: x")))
    for offset, value in changes:
        page[offset] = value
    with suppress(ParseError):
        assert parse_page([bytes(page)]).step in {12, None}
