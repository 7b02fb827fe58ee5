"""Extra operations that faults issue half-way through the step: a few metrics reduced over one group."""

from dataclasses import replace

from pardbg.watchdog.sim.callsites import host_site
from pardbg.watchdog.sim.instruction import Launch, Op, Program, Synchronize
from pardbg.watchdog.sim.layout import Group
from pardbg.watchdog.sim.program import alone, collective

EQUAL_SIZES = (1024, 1024, 1024)
DISTINCT_SIZES = (1024, 4096, 2048)


def metric(group: Group, index: int, size: int = 1024, op: Op = Op.ALL_REDUCE, dtype: str = "Float") -> Launch:
    """The ``index``-th of the metrics, each reduced at a line of its own."""
    shape = () if op is Op.BARRIER else (size,)
    operation = collective(group, op, f"metrics.{index}", shape, dtype)
    if op is Op.ALL_GATHER:
        operation = replace(operation, output_sizes=((size * len(group.ranks),),))
    return alone(operation, f"metrics.{index}")


def metrics(group: Group, sizes: tuple[int, ...] = DISTINCT_SIZES) -> list[Launch]:
    """All metrics, in order."""
    return [metric(group, index, size) for index, size in enumerate(sizes)]


def one_by_one(launches: list[Launch]) -> Program:
    """The host waits for each before it launches the next."""
    return [instruction for launch in launches for instruction in (launch, Synchronize(host_site("synchronize")))]
