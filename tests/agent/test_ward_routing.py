"""The routing of a world under an agent's care: rows of ranks put together step by step; ranks that lag, end, restart."""

from collections.abc import Iterable

from hypothesis import given, settings
from hypothesis import strategies as some
from msgspec.structs import replace

from pardbg.collectors.vitals.signs import Signs
from pardbg.watchdog.agent.ward_routing import RankFigures, WardRouting
from pardbg.watchdog.model.names import Kind
from pardbg.watchdog.model.routing import RoutingRow, RoutingSeries
from pardbg.watchdog.model.watched_layer import LayerIllness
from pardbg.watchdog.model.world import RankProcess

EVEN = (100,) * 8


class Told:
    """A rank whose routing is what the test says; every step has as many layers as ``counts``."""

    def __init__(self, rank: RankProcess) -> None:
        self.rank = rank
        self.newest_step = -1
        self.problem = ""
        self.rows: list[RoutingRow] = []
        self.is_open = True
        self.read_count = 0

    def tell(self, steps: Iterable[int], counts: tuple[int, ...] = EVEN, dropped: float = 0.0, layers: int = 1) -> None:
        """It has finished these steps."""
        self.rows += [
            RoutingRow(step=step, layer=layer, counts=counts, dropped=dropped) for step in steps for layer in range(layers)
        ]

    def read(self, after_step: int) -> RoutingSeries | None:
        """As `RankRouting` does."""
        new = tuple(row for row in self.rows if row.step > max(after_step, self.newest_step))
        if not new:
            return None
        self.newest_step = new[-1].step
        self.read_count += len(new)
        return RoutingSeries(rows=new, names={0: "layers.0.router"})

    def close(self) -> None:
        """The end."""
        self.is_open = False


class World:
    """Ranks of one world; each row that is read costs so much processor time."""

    def __init__(self, count: int, cost_s: float = 0.0) -> None:
        self.told: list[Told] = []
        self.page_step = 0
        self.now_s = 0.0
        self.routing = WardRouting(clock=lambda: cost_s * sum(told.read_count for told in self.told), open_reader=self._open)
        self.ranks = {
            number: RankProcess(rank=number, pid=100 + number, started_ticks=1, host="here") for number in range(count)
        }
        self.routing.meet(self.ranks)

    def _open(self, rank: RankProcess) -> Told:
        self.told.append(Told(rank))
        return self.told[-1]

    def look(self, *, without: tuple[int, ...] = ()) -> None:
        """A second later."""
        self.now_s += 1.0
        self.page_step = max([self.page_step, *(row.step for told in self.told for row in told.rows)])
        signs = {number: Signs(state="S", switches=1, step=self.page_step) for number in self.ranks if number not in without}
        self.routing.look(signs, self.now_s)

    @property
    def illnesses(self) -> list[LayerIllness]:
        """What is shown as ill."""
        return [illness for layer in self.routing.layers for illness in layer.illnesses]

    @property
    def steps(self) -> list[int]:
        """The newest step of each layer."""
        return [layer.step for layer in self.routing.layers]


def test_step_counts_once_all_ranks_have_it_and_is_the_sum_of_them() -> None:
    world = World(2)
    world.told[0].tell([1, 2, 3], (100, 300), dropped=40.0)
    world.told[1].tell([1, 2], (100, 300), dropped=120.0)
    world.look()
    (layer,) = world.routing.layers
    assert (layer.layer, layer.name, layer.step, layer.drop_ratio, layer.load_max_ratio) == (0, "layers.0.router", 2, 0.2, 1.5)
    assert world.routing.figures_of(0) == RankFigures(step=3, assignments=400, drop_ratio=0.1)
    world.told[1].tell([3], (300, 100))
    world.look()
    assert (world.steps, world.routing.layers[0].load_max_ratio) == ([3], 1.0)


def test_rank_whose_counts_stay_away_or_that_has_ended_is_not_waited_for() -> None:
    world = World(3)
    for told in world.told:
        told.tell([1])
    world.look()
    for step in range(2, 8):
        world.told[0].tell([step])
        world.told[1].tell([step])
        world.look()
    assert world.steps == [1]  # a rank that is a few steps behind may be slow
    world.told[0].tell(range(8, 30))
    world.told[1].tell(range(8, 30))
    world.look()
    assert world.steps == [29]
    world.told[0].tell([30])
    world.look(without=(1, 2))
    assert world.steps == [30]


def test_rank_that_starts_anew_starts_all_anew() -> None:
    world = World(2)
    for told in world.told:
        told.tell(range(50, 60))
    world.look()
    world.ranks[1] = RankProcess(rank=1, pid=200, started_ticks=9, host="here")
    world.routing.meet(world.ranks)
    assert (world.routing.layers, world.told[1].is_open) == ((), False)
    world.page_step = 0
    for told in world.told:
        told.rows = []
    world.told[0].tell([4])
    world.told[2].tell([4])
    world.look()
    assert world.steps == [4]


def test_spike_is_told_while_it_lasts_and_for_a_minute_more() -> None:
    world = World(1)
    for step in range(100):
        world.told[0].tell([step], dropped=8.0)
        world.look()
    assert world.illnesses == []
    world.told[0].tell(range(100, 110), dropped=320.0)
    world.look()
    spike = LayerIllness(kind=Kind.DROP_SPIKE, since_step=100)
    assert world.illnesses == [spike]
    world.told[0].tell(range(110, 130), dropped=8.0)
    world.look()
    ended_s = world.now_s
    while world.now_s < ended_s + 60:
        world.look()
        assert world.illnesses == [spike]
    world.look()
    assert world.illnesses == []


def test_job_of_many_small_steps_is_sampled_and_never_behind() -> None:
    world, read = World(2, cost_s=0.0005), []
    for look in range(6):
        before = world.told[1].read_count
        for told in world.told:
            told.rows = []
            told.tell(range(1000 * look, 1000 * (look + 1)))
        world.look()
        read.append(world.told[1].read_count - before)
        assert world.steps == [1000 * look + 999]
    assert read[0] == 3
    assert 55 <= read[-1] <= 65


def test_job_that_can_be_afforded_is_read_whole() -> None:
    world = World(2, cost_s=0.0005)
    for step in range(200):
        for told in world.told:
            told.tell([step])
        if step % 10 == 9:
            world.look()
    assert world.told[0].read_count > 180


FIGURE = (
    some.none() | some.sampled_from((0.0, -1e308, 1e308, 5e-324, -1.0)) | some.floats(allow_nan=False, allow_infinity=False)
)
COUNTS = some.lists(some.sampled_from((0, 1, 500, 2**32 - 1)), max_size=6).map(tuple)
ANY_ROW = some.builds(
    RoutingRow,
    step=some.just(0),
    layer=some.sampled_from((0, 0, 0, 1, 2**31 - 1)),
    counts=COUNTS,
    dropped=FIGURE,
    predicted_dropped=FIGURE,
    capacity=FIGURE,
    top_k=some.none() | some.sampled_from((1, 8, 2**32 - 1)),
    tokens=FIGURE,
    entropy=FIGURE,
    z=FIGURE,
    aux_loss=FIGURE,
    ep_size=some.none() | some.sampled_from((1, 2, 2**32 - 1)),
    router_grad_norm=FIGURE,
    loss=FIGURE,
)


@settings(max_examples=20, deadline=None)
@given(some.lists(some.tuples(some.integers(1, 2**58), some.lists(ANY_ROW, max_size=2)), max_size=12))
def test_whatever_a_file_says_the_agent_goes_on(steps: list[tuple[int, list[RoutingRow]]]) -> None:
    """The file belongs to the job's user."""
    world, step = World(2), 0
    for stride, rows in steps:
        step += stride
        for told in world.told:
            told.rows += [replace(row, step=step) for row in rows]
        world.look()
        assert world.routing.problem == ""
    assert {layer.layer for layer in world.routing.layers} <= {0, 1}


def test_counts_that_no_detector_bears_end_the_watch_of_them_until_ranks_start_anew() -> None:
    world = World(1)
    world.told[0].tell([1], counts=(10**400, 1))
    world.look()
    world.told[0].tell([2])
    world.routing.meet(world.ranks)
    world.look()
    assert "make no sense" in world.routing.problem
    assert (world.routing.layers, world.told[0].is_open) == ((), False)
    world.ranks[0] = RankProcess(rank=0, pid=200, started_ticks=9, host="here")
    world.routing.meet(world.ranks)
    world.told[1].tell([3])
    world.look()
    assert (world.routing.problem, world.steps) == ("", [3])


def test_rank_whose_files_lie_on_a_disk_is_told_and_one_far_behind_is_not_waited_for() -> None:
    world = World(2)
    world.told[1].problem = "routing of the probe of rank 1 lies on a disk"
    assert world.routing.trouble.startswith("not watched: routing of the probe of rank 1 lies on a disk; `pardbg moe --job`")
    for step in range(1, 121):
        world.told[0].tell([step])
        world.told[1].tell([step // 4] if step % 4 == 0 else [])
        world.look()
    assert world.steps == [120]
