"""Many ranks into one series."""

from pardbg.watchdog.model.routing import RoutingRow, RoutingSeries
from pardbg.watchdog.routing.merging import merge


def test_counts_are_summed_and_means_are_weighted_by_assignments() -> None:
    first = RoutingRow(
        step=1, layer=0, counts=(3, 1), dropped=1, tokens=2, top_k=2, entropy=0.25, router_grad_norm=0.5, capacity=2
    )
    second = RoutingRow(step=1, layer=0, counts=(2, 10), dropped=4, tokens=6, top_k=2, entropy=0.75, capacity=6)
    merged = merge([RoutingSeries(rows=(first,), names={0: "mlp"}), RoutingSeries(rows=(second,), frozen=(0,))])
    assert merged == RoutingSeries(
        rows=(
            RoutingRow(
                step=1, layer=0, counts=(5, 11), dropped=5, tokens=8, top_k=2, entropy=0.625, router_grad_norm=0.5, capacity=6
            ),
        ),
        names={0: "mlp"},
        frozen=(0,),
    )


def test_a_step_that_one_rank_has_not_reached_waits() -> None:
    ahead = RoutingSeries(rows=tuple(RoutingRow(step=step, layer=0, counts=(1, 1)) for step in (4, 5, 6)))
    behind = RoutingSeries(rows=tuple(RoutingRow(step=step, layer=0, counts=(1, 1)) for step in (3, 5)))
    assert [(row.step, row.counts) for row in merge([ahead, behind]).rows] == [(3, (1, 1)), (4, (1, 1)), (5, (2, 2))]


def test_stages_that_own_different_layers_do_not_wait_for_each_other() -> None:
    first = RoutingSeries(rows=(RoutingRow(step=9, layer=0, counts=(1, 2)),))
    second = RoutingSeries(rows=(RoutingRow(step=7, layer=1, counts=(3, 4)),))
    assert [(row.step, row.layer) for row in merge([first, second, RoutingSeries(rows=())]).rows] == [(7, 1), (9, 0)]


def test_a_sum_of_which_a_part_is_not_known_is_not_known() -> None:
    known = RoutingSeries(rows=(RoutingRow(step=0, layer=0, counts=(1, 1), dropped=1, loss=2.0),))
    unknown = RoutingSeries(rows=(RoutingRow(step=0, layer=0, counts=(1, 1), loss=4.0),))
    (row,) = merge([known, unknown]).rows
    assert (row.dropped, row.loss) == (None, 3.0)


def test_the_number_of_experts_that_most_ranks_have_holds() -> None:
    sizes = [(1, 1), (2, 2), (3, 3, 3)]
    (row,) = merge([RoutingSeries(rows=(RoutingRow(step=0, layer=0, counts=counts),)) for counts in sizes]).rows
    assert row.counts == (3, 3)


def test_a_rank_that_has_ended_is_not_waited_for_and_one_that_is_sixteen_steps_behind_is() -> None:
    def last(behind: int) -> int:
        rows = [RoutingRow(step=step, layer=0, counts=(1, 1)) for step in range(40)]
        series = [RoutingSeries(rows=tuple(rows)), RoutingSeries(rows=tuple(rows[: 40 - behind]))]
        return merge(series).rows[-1].step

    assert (last(16), last(17)) == (23, 39)


def test_a_loss_without_any_assignment_is_a_mean_of_all_alike() -> None:
    series = [RoutingSeries(rows=(RoutingRow(step=0, layer=0, counts=(0, 0), loss=loss),)) for loss in (1.0, 3.0)]
    (row,) = merge(series).rows
    assert row.loss == 2.0
