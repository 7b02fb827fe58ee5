"""The record of a replica: what is kept of a long run, and that no bytes do harm to who reads them."""

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from pardbg.collectors.parsing.page import parse_page
from pardbg.collectors.parsing.replica_record import read_replica
from pardbg.collectors.probe import replica_format as form
from pardbg.collectors.probe.page import Page
from pardbg.collectors.probe.page_format import PAGE_SIZE, ReplicaRecord, StepRecord, layout_of
from pardbg.collectors.probe.replicas.keeping import Keeper
from pardbg.watchdog.model.replica import ReplicaMoment, ReplicaSeen

HEAD = form.Head(ordinal=1, group=9, size=4, tensors=6, parts=2, seen=30, whole=60)


def test_steps_to_look_at_are_many_at_first_and_every_64th_later() -> None:
    assert [step for step in range(300) if form.is_due(step)] == [0, 1, 2, 4, 8, 16, 32, 64, 128, 192, 256]


def test_of_a_long_run_the_first_steps_are_kept_and_the_old_ones_sparsely() -> None:
    kept: dict[int, int] = {}
    for step in range(64 * 1001):
        if form.is_due(step):
            kept[form.slot_of(step)] = step
    steps = sorted(kept.values())
    assert steps[:7] == [0, 1, 2, 4, 8, 16, 32]
    assert steps[-5:] == [63744, 63808, 63872, 63936, 64000]
    assert steps[7:12] == [8192, 16384, 24576, 32768, 36864]
    assert max(kept) < form.SLOTS


def test_what_is_kept_is_read_from_the_page(tmp_path: Path) -> None:
    page = Page(str(tmp_path / "page"))
    read = page.step_reader()
    assert read() == 0
    page.write(StepRecord, 128, 1, 1, 1, 1, 1)
    assert read() == 128
    keeper = Keeper(lambda body: page.write(ReplicaRecord, body))
    keeper.begin(HEAD)
    for step in (0, 1, 64, 128):
        keeper.keep(step, step + 1, [step, -step], 5)
    replica = parse_page([(tmp_path / "page").read_bytes()]).replica
    assert replica is not None
    assert (replica.ordinal, replica.group, replica.size, replica.tensors, replica.parts) == (1, 9, 4, 6, 2)
    assert [(moment.step, moment.forward, moment.data) for moment in replica.moments] == [
        (0, 1, 5),
        (1, 2, 5),
        (64, 65, 5),
        (128, 129, 5),
    ]
    assert len({moment.weights for moment in replica.moments}) == 4
    assert [(parts.step, len(parts.sums)) for parts in replica.newest] == [(64, 2), (128, 2)]
    keeper.begin(form.NOTHING)
    assert parse_page([(tmp_path / "page").read_bytes()]).replica is None


def test_records_do_not_overlap_and_fit_into_the_page() -> None:
    offset, payload = layout_of(ReplicaRecord)
    assert offset + 8 + payload.size <= PAGE_SIZE
    assert payload.size == form.SIZE


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=form.SIZE + 9), st.booleans())
def test_no_bytes_make_more_than_a_small_and_sensible_answer(noise: bytes, is_right_form: bool) -> None:  # noqa: FBT001
    body = (form.FORM.to_bytes(4, "little") if is_right_form else b"") + noise
    replica = read_replica(body)
    if replica is None:
        return
    assert isinstance(replica, ReplicaSeen)
    assert len(replica.moments) <= form.SLOTS
    assert all(len(parts.sums) <= form.MOST_PARTS for parts in replica.newest)
    assert 0 < replica.parts <= replica.tensors
    assert 0 < replica.seen <= replica.whole


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.builds(form.Moment, *[st.integers(0, 2**32 - 1)] * 4), max_size=20),
    st.builds(form.Head, *[st.integers(0, 2**32 - 1)] * 5, *[st.integers(0, 2**64 - 1)] * 2),
)
def test_any_numbers_in_a_record_are_read_or_refused(moments: list[form.Moment], head: form.Head) -> None:
    body = form.encode(head, dict(enumerate(moments)), ())
    replica = read_replica(body)
    assert replica is None or {moment.step for moment in replica.moments} <= {moment.step for moment in moments}
    sane = read_replica(form.encode(HEAD, dict(enumerate(moments)), ()))
    assert sane is not None
    due = {moment.step for moment in moments if moment.forward and form.is_due(moment.step)}
    assert {moment.step for moment in sane.moments} == due
    assert all(isinstance(moment, ReplicaMoment) for moment in sane.moments)
