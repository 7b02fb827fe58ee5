"""How the file `routing` of one rank is looked for, read on and found anew. The files here tell what the test says."""

from pardbg.collectors.vitals.rank_routing import RankRouting
from pardbg.collectors.vitals.routing_file import RoutingFile
from pardbg.watchdog.model.routing import RoutingRow, RoutingSeries
from pardbg.watchdog.model.world import RankProcess

HERE = RankProcess(rank=0, pid=100, started_ticks=1, host="here")


class File(RoutingFile):
    """A file with steps up to ``newest``; None once another has taken its place."""

    def __init__(self, newest: int) -> None:
        self.newest: int | None = newest
        self.is_open = True

    def read(self, after_step: int = -1, most_counts: int = 0) -> RoutingSeries | None:
        """As it does."""
        del most_counts
        if self.newest is None:
            return None
        return RoutingSeries(
            rows=tuple(RoutingRow(step=step, layer=0, counts=(1, 1)) for step in range(after_step + 1, self.newest + 1))
        )

    def close(self) -> None:
        """The end."""
        assert self.is_open
        self.is_open = False


def steps(series: RoutingSeries | None) -> list[int]:
    return [row.step for row in series.rows] if series else []


def test_file_is_looked_for_now_and_then_and_each_step_is_read_once() -> None:
    asked: list[int] = []
    files = iter([None, None, File(2)])
    looks = 0

    def find(_rank: RankProcess) -> RoutingFile | None:
        asked.append(looks)
        return next(files)

    reader = RankRouting(HERE, find)
    read = {}
    for looks in range(13):
        read[looks] = steps(reader.read(-1))
    assert asked == [0, 5, 10]
    assert {look: found for look, found in read.items() if found} == {10: [0, 1, 2]}


def test_file_that_another_has_replaced_is_found_anew_and_read_on() -> None:
    first, second = File(3), File(5)
    files = iter([first, second])
    reader = RankRouting(HERE, lambda _rank: next(files))
    assert steps(reader.read(1)) == [2, 3]
    first.newest = None
    assert (steps(reader.read(1)), first.is_open) == ([], False)
    assert steps(reader.read(1)) == [4, 5]
    reader.close()
    assert not second.is_open
