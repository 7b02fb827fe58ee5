"""Every shape of a dump: versions, back ends, coalesced groups, rings, damage."""

import gc
import pickle
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pardbg.collectors.parsing.flight_recorder import parse_flight_recorder
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.recording import GroupConfig, GroupName, GroupProgress, Recording
from tests.collectors.dumps import Entry, as_json, gloo, make_dump, make_entry, outstanding, pickled, write_ring


def parse(*entries: Entry, **changes: Any) -> Recording:
    return parse_flight_recorder(pickled(make_dump(entries, **changes)))


def done(recording: Recording) -> list[bool]:
    return [operation.is_done for operation in recording.operations]


def ops(recording: Recording) -> list[str]:
    return [recording.signatures[operation.signature].op for operation in recording.operations]


@pytest.mark.parametrize("key", ["comm_lib_version", "nccl_version"])
def test_library_version_has_an_old_and_a_new_key(key: str) -> None:
    versions: dict[str, Any] = {"comm_lib_version": ..., key: "2.27.3"}
    assert parse(make_entry(0), **versions).library_version == "2.27.3"


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_every_pickle_protocol_says_the_same(protocol: int) -> None:
    dump = make_dump([make_entry(0), outstanding(1)])
    assert parse_flight_recorder(pickled(dump, protocol)) == parse_flight_recorder(pickled(dump))


def test_json_says_the_same_as_pickle_except_for_the_frames() -> None:
    dump = make_dump([make_entry(0, frames=...), outstanding(1, frames=..., time_discovered_completed_ns=0)])
    assert parse_flight_recorder(as_json(dump)) == parse_flight_recorder(pickled(dump))


def test_json_of_an_empty_ring_has_no_entries_key() -> None:
    data = b'{"comm_lib_version":"","nccl_comm_state":{},"pg_config":{},"pg_status":{},"version":"2.10"}'
    recording = parse_flight_recorder(data)
    assert (recording.operations, recording.damage, recording.is_switched_on) == ((), "", False)


def test_empty_ring_with_counters_is_switched_on() -> None:
    status = {"0": {"last_enqueued_collective": 4, "last_started_collective": -1, "last_completed_collective": 4}}
    recording = parse(pg_status=status)
    assert recording.is_switched_on
    assert recording.progress == (GroupProgress(local_id="0", last_enqueued=4, last_completed=4),)


def test_json_counters_are_text() -> None:
    status = {"0": {"last_enqueued_collective": "4", "last_started_collective": "-1", "last_completed_collective": "3"}}
    recording = parse_flight_recorder(as_json(make_dump([], pg_status=status)))
    assert recording.progress == (GroupProgress(local_id="0", last_enqueued=4, last_completed=3),)


def test_bare_list_of_the_first_version() -> None:
    old = {"collective_seq_id": ..., "p2p_seq_id": ..., "op_id": ..., "is_p2p": ..., "retired": ..., "time_created_ns": ...}
    entries = [make_entry(n, **old, process_group=..., seq_id=n + 1, time_created_us=10 + n) for n in range(3)]
    recording = parse_flight_recorder(pickled(entries))
    assert [(op.seq, op.created_ns) for op in recording.operations] == [(1, 10_000), (2, 11_000), (3, 12_000)]
    assert recording.groups == (GroupName(name="0", desc=""),)


def test_version_1_without_any_sequence_number_keeps_every_entry() -> None:
    entries = [make_entry(n, collective_seq_id=..., p2p_seq_id=..., op_id=...) for n in range(3)]
    recording = parse_flight_recorder(pickled({"version": "1.0", "entries": entries}))
    assert [operation.record_id for operation in recording.operations] == [0, 1, 2]


def test_members_of_a_batch_of_p2p_are_as_finished_as_its_closing_entry() -> None:
    def member(number: int, name: str) -> Entry:
        return outstanding(number, profiling_name=name, is_p2p=True, collective_seq_id=4, p2p_seq_id=7)

    closing = {"profiling_name": "nccl:coalesced", "collective_seq_id": 4, "p2p_seq_id": 7}
    sizes: dict[str, Any] = {"input_sizes": [], "output_sizes": []}
    members = [member(0, "nccl:send 0->1"), member(1, "nccl:recv 0<-3")]
    finished = parse(*members, make_entry(2, **closing, **sizes))
    waiting = parse(*members, outstanding(2, **closing, **sizes))
    assert (ops(finished), done(finished)) == (["send", "recv"], [True, True])
    assert (ops(waiting), done(waiting)) == (["send", "recv"], [False, False])
    assert len({operation.batch for operation in waiting.operations}) == 1
    ends = [(signature.src, signature.dst) for signature in waiting.signatures]
    assert ends == [(0, 1), (3, 0)]


def test_uneven_all_gather_is_one_operation() -> None:
    pieces = [outstanding(n, profiling_name="nccl:_broadcast_oop", collective_seq_id=9) for n in range(4)]
    closing = make_entry(4, profiling_name="nccl:ALLGATHER_coalesced", collective_seq_id=9, input_sizes=[], output_sizes=[])
    recording = parse(*pieces, closing)
    assert (ops(recording), done(recording)) == (["ALLGATHER_coalesced"], [True])


def test_end_of_a_p2p_batch_without_members_does_not_finish_the_collective_before_it() -> None:
    closing = make_entry(1, profiling_name="nccl:coalesced", collective_seq_id=1, p2p_seq_id=3, input_sizes=[], output_sizes=[])
    recording = parse(outstanding(0), closing)
    assert ops(recording) == ["all_reduce", "coalesced"]


def test_unbatched_p2p_has_one_operation_each() -> None:
    entries = [
        make_entry(0, profiling_name="nccl:send 0->1", is_p2p=True, collective_seq_id=0, p2p_seq_id=1),
        outstanding(1, profiling_name="nccl:recv 0<-1", is_p2p=True, collective_seq_id=0, p2p_seq_id=2),
    ]
    recording = parse(*entries)
    assert [(op.p2p_seq, op.is_p2p, op.batch, op.is_done) for op in recording.operations] == [
        (1, True, 0, True),
        (2, True, 0, False),
    ]


def test_gloo_is_done_when_retired() -> None:
    assert done(parse(gloo(0, is_retired=True), gloo(1, is_retired=False))) == [True, False]


def test_gloo_config_without_a_name_is_no_config() -> None:
    assert parse(gloo(0, is_retired=True), pg_config={"": {"name": "", "desc": "", "ranks": "[]"}}).configs == ()


def test_nccl_that_retired_without_completion_timed_out() -> None:
    assert done(parse(make_entry(0), outstanding(1, retired=True))) == [True, False]


def test_nccl_that_completed_and_is_not_retired_is_done() -> None:
    assert done(parse(make_entry(0, retired=False))) == [True]


@pytest.mark.parametrize("prefix", ["c10d", "nccl2", "ncclx", "gloo", "somebodys"])
def test_prefix_is_the_back_end(prefix: str) -> None:
    recording = parse(make_entry(0, profiling_name=f"{prefix}:all_to_all"))
    assert [(signature.backend, signature.op) for signature in recording.signatures] == [(prefix, "all_to_all")]


def test_unknown_operation_without_a_prefix_is_kept() -> None:
    assert ops(parse(make_entry(0, profiling_name="warp_reduce"))) == ["warp_reduce"]


def test_ring_that_wrapped_starts_anywhere() -> None:
    recording = parse(*(make_entry(n) for n in range(28, 38)))
    assert [operation.record_id for operation in recording.operations] == list(range(28, 38))


def test_equal_call_sites_and_signatures_are_stored_once() -> None:
    recording = parse(*(make_entry(n) for n in range(50)))
    assert (len(recording.sites), len(recording.signatures), len(recording.groups)) == (1, 1, 1)
    assert recording.sites[0][1].where == "/app/train.py:41 train_step"


def test_members_of_a_group_come_from_text() -> None:
    text = {
        "5": {"name": "5", "desc": "tp", "ranks": "[0,4, 12]"},
        "6": {"name": "6", "desc": "x", "ranks": "[\u00b2, 9999999999999]"},
    }
    assert parse(pg_config=text).configs == (GroupConfig.of("5", "tp", (0, 4, 12)),)


def test_damaged_entries_are_dropped_and_counted() -> None:
    recording = parse(make_entry(0), make_entry(1, input_sizes="many"), "nonsense", make_entry(3))  # type: ignore[arg-type]
    assert [operation.record_id for operation in recording.operations] == [0, 3]
    assert recording.damage.startswith("2 of 4 entries are damaged")


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 2**200])
def test_number_beyond_64_bits_is_damage(number: int) -> None:
    recording = parse(make_entry(0), make_entry(1, collective_seq_id=number))
    assert [operation.record_id for operation in recording.operations] == [0]


def test_half_a_character_is_refused() -> None:
    with pytest.raises(ParseError, match="not Unicode"):
        parse(make_entry(0, process_group=("\ud800", "x")))


@pytest.mark.parametrize("data", [b"", b"\x80\x02N.", b"\x80\x02}.", b"[]x", b'{"a": 1}', b"\x80\x02", pickle.dumps([1, 2])])
def test_anything_else_is_refused_in_one_line(data: bytes) -> None:
    with pytest.raises(ParseError) as caught:
        parse_flight_recorder(data)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize("count", [3, 2500])
def test_truncated_file_keeps_its_whole_entries(protocol: int, count: int) -> None:
    dump = make_dump(make_entry(n) for n in range(count))
    data = pickled(dump, protocol)
    kept_before = 0
    for tenth in range(3, 10):
        recording = parse_flight_recorder(data[: len(data) * tenth // 10])
        kept = [operation.record_id for operation in recording.operations]
        assert kept == list(range(len(kept)))
        assert kept_before <= len(kept) < count
        assert len(kept) >= count * tenth // 10 - 2 - count // 50
        assert f"kept {len(kept)} whole entries" in recording.damage
        kept_before = len(kept)


def test_truncated_json_keeps_its_whole_entries() -> None:
    data = as_json(make_dump(make_entry(n) for n in range(20)))
    recording = parse_flight_recorder(data[: len(data) * 6 // 10])
    assert [operation.record_id for operation in recording.operations] == list(range(len(recording.operations)))
    assert len(recording.operations) > 8


@settings(max_examples=60, deadline=None)
@given(cut=st.floats(0.0, 1.0), count=st.integers(1, 30))
def test_entries_kept_of_a_truncated_dump_are_a_prefix_of_all(cut: float, count: int) -> None:
    data = pickled(make_dump(make_entry(n) for n in range(count)))
    try:
        recording = parse_flight_recorder(data[: int(len(data) * cut)])
    except ParseError:
        return
    assert [operation.record_id for operation in recording.operations] == list(range(len(recording.operations)))


_TEXT = st.text(st.characters(codec="utf-8"), max_size=12)


@settings(max_examples=80, deadline=None)
@given(
    names=st.lists(st.tuples(_TEXT, st.integers(0, 2**62), st.booleans(), st.tuples(_TEXT, _TEXT)), max_size=8),
)
def test_plain_collectives_come_back_as_written(names: list[tuple[str, int, bool, tuple[str, str]]]) -> None:
    entries = [
        (make_entry if is_done else outstanding)(
            number, profiling_name=f"gloo:x{op}", retired=is_done, collective_seq_id=number + 1, time_created_ns=time_ns,
            pg_id=number, process_group=group,
        )
        for number, (op, time_ns, is_done, group) in enumerate(names)
    ]  # fmt: skip
    recording = parse(*entries)
    read = [
        (
            recording.signatures[operation.signature].op[1:],
            operation.created_ns,
            operation.is_done,
            (recording.groups[operation.group].name, recording.groups[operation.group].desc),
        )
        for operation in recording.operations
    ]
    assert read == names


def test_real_dumps_are_read_without_damage(real_dumps: list[Path]) -> None:
    for path in real_dumps:
        recording = parse_flight_recorder(path.read_bytes())
        assert recording.version == "2.9"
        assert recording.damage == ""
        assert not any(done(recording))
        assert recording.progress


def test_time_is_linear_in_the_number_of_entries() -> None:
    def seconds(count: int) -> float:
        data = write_ring(count)
        gc.disable()
        try:
            start_s = time.process_time()
            parse_flight_recorder(data)
            return time.process_time() - start_s
        finally:
            gc.enable()

    assert seconds(100_000) < 12 * seconds(20_000)


def test_transfer_left_scheduled_is_over_once_retired_or_passed_by_a_collective() -> None:
    def transfer(number: int, **changes: object) -> dict[str, object]:
        return outstanding(number, profiling_name="nccl:send 0->1", is_p2p=True, p2p_seq_id=number + 1, **changes)

    assert done(parse(transfer(0, retired=True))) == [True]
    assert done(parse(transfer(0), make_entry(1))) == [True, True]
    assert done(parse(transfer(0))) == [False]
    assert done(parse(make_entry(0), transfer(1))) == [True, False]  # nothing came after it
    assert done(parse(transfer(0, state="started"), make_entry(1))) == [False, True]  # its kernel runs
    assert done(parse(transfer(0), outstanding(1))) == [False, False]
