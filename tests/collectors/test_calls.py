"""Times of operations in a few bytes."""

from hypothesis import given
from hypothesis import strategies as st

from pardbg.watchdog.model.calls import MOST_PACKED, Call, pack_calls, unpack_calls

EPOCH_NS = 1_764_500_000_000_000_000
CALLS = st.builds(
    lambda group, seq, at, took, rooted, polled: Call(
        group, seq, EPOCH_NS + at * 100_000, EPOCH_NS + (at + took) * 100_000 if took else 0, rooted, polled
    ),
    st.integers(0, 300),
    st.integers(-1, 2**40),
    st.integers(-(2**30), 2**30),
    st.integers(0, 2**30),
    st.booleans(),
    st.booleans(),
)


@given(st.lists(CALLS, max_size=MOST_PACKED))
def test_what_is_packed_comes_back(calls: list[Call]) -> None:
    assert unpack_calls(pack_calls(calls)) == tuple(calls)


@given(st.binary(max_size=400))
def test_damage_is_no_error_and_makes_no_more_calls_than_there_may_be(data: bytes) -> None:
    assert len(unpack_calls(data)) <= MOST_PACKED


def test_steps_of_a_second_take_seven_bytes_each_and_the_newest_are_kept() -> None:
    calls = [Call(0, seq, EPOCH_NS + seq * 10**9, EPOCH_NS + seq * 10**9 + 4 * 10**8, False, True) for seq in range(1, 300)]  # noqa: FBT003

    assert len(pack_calls(calls)) <= 7 * MOST_PACKED + 8
    assert unpack_calls(pack_calls(calls)) == tuple(calls[-MOST_PACKED:])
