"""Rows that others wrote: whatever they hold, watching and merging them must not fail."""

from hypothesis import given, settings
from hypothesis import strategies as st

from pardbg.watchdog.model.routing import RoutingRow, RoutingSeries
from pardbg.watchdog.routing.merging import merge
from pardbg.watchdog.routing.model_watch import RoutingWatch

NUMBER = st.none() | st.sampled_from((0.0, -1.0, 1e300, float("nan"), float("inf"))) | st.floats(0, 100)
COUNT = st.integers(0, 50) | st.sampled_from((-1, 2**40, 2**70))
ROW = st.builds(
    RoutingRow,
    step=st.integers(0, 6),
    layer=st.integers(0, 2),
    counts=st.lists(COUNT, max_size=6).map(tuple),
    dropped=NUMBER,
    predicted_dropped=NUMBER,
    capacity=NUMBER,
    top_k=st.none() | st.integers(-1, 8),
    tokens=NUMBER,
    entropy=NUMBER,
    z=NUMBER,
    aux_loss=NUMBER,
    ep_size=st.none() | st.integers(-1, 8),
    router_grad_norm=NUMBER,
    loss=NUMBER,
)


@given(st.lists(ROW, max_size=20), st.integers(1, 40))
@settings(max_examples=8, deadline=None)
def test_no_rows_make_the_detectors_fail(rows: list[RoutingRow], times: int) -> None:
    watch = RoutingWatch()
    for _ in range(times):
        watch.feed(rows, frozen=(1,))
    assert set(watch.layers) == {row.layer for row in rows}
    assert all(isinstance(text, str) for text in watch.doubts)
    assert all(illness.layer in watch.layers for illness in (*watch.illnesses, *watch.past))


@given(st.lists(st.lists(ROW, max_size=8), max_size=4))
@settings(max_examples=8, deadline=None)
def test_merged_rows_are_in_order_and_one_a_step_and_layer(ranks: list[list[RoutingRow]]) -> None:
    merged = merge([RoutingSeries(rows=tuple(rows)) for rows in ranks]).rows
    keys = [(row.step, row.layer) for row in merged]
    assert keys == sorted(set(keys))
