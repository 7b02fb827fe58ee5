"""A ring in small: what is kept, what is hashed, and how small it is."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pardbg.collectors.cutting import cut
from pardbg.collectors.digesting import MOST_BYTES, digest
from pardbg.watchdog.model.recording import Frame, GroupConfig, GroupName, Operation, Recording, Signature
from pardbg.watchdog.model.summary import BLOCK_SIZE, KEPT_OPEN, Block
from pardbg.watchdog.model.wanted import Wanted

REDUCE = Signature(backend="nccl", op="all_reduce", input_sizes=((8,),), input_dtypes=("Float",))
BROADCAST = Signature(backend="nccl", op="broadcast", input_sizes=((8,),), input_dtypes=("Float",))
TORCH = Frame(name="all_reduce", filename="/x/site-packages/torch/distributed/distributed_c10d.py", line=1)
STEP, OTHER = Frame(name="step", filename="/app/train.py", line=7), Frame(name="log", filename="/app/log.py", line=9)


def ring(seqs: range, finished: int, sites: int = 2, **changes: object) -> Recording:
    """Collectives of one group, the first ``finished`` of them done."""
    operations = tuple(
        Operation(seq, 0, seq, 0, 0, seq % sites, 1_000 * seq, is_done=place < finished, is_p2p=False)
        for place, seq in enumerate(seqs)
    )
    whole = Recording(
        version="2.9",
        library_version="",
        groups=(GroupName(name="0", desc="default_pg"),),
        signatures=(REDUCE, BROADCAST),
        sites=((TORCH, STEP), (TORCH, OTHER, STEP)),
        operations=operations,
        configs=(),
        progress=(),
        local_ids={"0": "0"},
    )
    return msgspec.structs.replace(whole, **changes)


def seqs_of(recording: Recording) -> list[int]:
    return [operation.seq for operation in recording.operations]


def blocks_of(recording: Recording) -> tuple[Block, ...]:
    summary = digest(recording).summary
    assert summary is not None
    return summary.blocks


def test_newest_finished_and_all_unfinished_operations_are_kept() -> None:
    assert seqs_of(digest(ring(range(1, 101), finished=97))) == [96, 97, 98, 99, 100]


def test_of_a_long_queue_the_oldest_and_the_newest_are_kept() -> None:
    kept = seqs_of(digest(ring(range(1, 101), finished=50)))
    assert kept == [49, 50, *range(51, 51 + KEPT_OPEN), 100]


def test_newest_operation_that_needed_all_members_is_kept() -> None:
    whole = ring(range(1, 11), finished=10)
    rooted = tuple(
        Operation(it.record_id, 0, it.seq, 0, int(it.seq > 5), 0, it.created_ns, is_done=True, is_p2p=False)
        for it in whole.operations
    )
    assert seqs_of(digest(msgspec.structs.replace(whole, operations=rooted))) == [5, 9, 10]


def test_blocks_are_aligned_so_that_windows_that_lie_apart_have_some_in_common() -> None:
    here, there = blocks_of(ring(range(1, 300), finished=299)), blocks_of(ring(range(90, 320), finished=230))
    assert [(block.first_seq, block.count) for block in there] == [(90, 38), (128, 64), (192, 64), (256, 64)]
    assert set(here) & set(there) == {block for block in here if block.first_seq in {128, 192}}
    assert all(block.first_seq % BLOCK_SIZE == 0 for block in here[1:])


def test_call_sites_change_only_the_full_hash() -> None:
    here, there = blocks_of(ring(range(1, 11), 10)), blocks_of(ring(range(1, 11), 10, sites=1))
    assert [block.hard for block in here] == [block.hard for block in there]
    assert [block.full for block in here] != [block.full for block in there]


def test_pauses_are_those_of_the_whole_ring() -> None:
    whole = ring(range(1, 101), finished=100)
    late = (
        *whole.operations[:50],
        *(msgspec.structs.replace(it, created_ns=it.created_ns + 9_000) for it in whole.operations[50:]),
    )
    summary = digest(msgspec.structs.replace(whole, operations=late)).summary
    assert summary is not None
    assert (summary.longest_gap_ns, summary.usual_gap_ns) == (10_000, 1_000)


def test_digest_of_a_digest_is_itself() -> None:
    once = digest(ring(range(1, 101), finished=97))
    assert digest(once) is once


@pytest.mark.parametrize("most_bytes", [MOST_BYTES, 3000, 1500, 900])
@given(count=st.integers(1, 400), members=st.lists(st.integers(0, 100_000), min_size=1, max_size=600, unique=True))
def test_no_digest_is_larger_than_it_may_be_and_what_is_cut_is_told(most_bytes: int, count: int, members: list[int]) -> None:
    sites = tuple((Frame(name=f"f{number}", filename=f"/app/{number}/{'x' * 60}.py", line=number),) for number in range(40))
    whole = ring(range(1, count + 1), finished=count // 2, sites=40, configs=(GroupConfig.of("0", "w", members),))
    small = digest(msgspec.structs.replace(whole, sites=sites), most_bytes)
    assert len(msgspec.msgpack.encode(small)) <= most_bytes
    assert small.summary is not None
    is_less = small.configs != whole.configs or (not small.summary.blocks)
    assert small.summary.cut or not is_less


def test_what_is_wanted_is_cut_out_of_the_ring() -> None:
    whole = ring(range(1, 101), finished=97)
    assert seqs_of(cut(whole, Wanted(rank=0, group="0", first_seq=60, last_seq=62))) == [60, 61, 62]
    assert seqs_of(cut(whole, Wanted(rank=0, group="7", first_seq=60, last_seq=62))) == []
    assert cut(whole, Wanted(rank=0)) is whole


def test_rank_of_hundreds_of_groups_is_not_seen_rather_than_seen_by_half() -> None:
    names = tuple(GroupName(name=str(number), desc="undefined") for number in range(400))
    operations = tuple(
        Operation(place, place % 400, place // 400 + 1, 0, 0, 0, place, is_done=place < 4000, is_p2p=False)
        for place in range(4400)
    )
    small = digest(ring(range(1, 2), 1, groups=names, operations=operations))
    assert len(msgspec.msgpack.encode(small)) <= MOST_BYTES
    assert "too many groups" in small.damage
    assert small.operations == ()
