"""The table of faults. A new one is one more entry in a module's ``FAULTS``, with a near miss next to it."""

from pardbg.watchdog.sim.faults import absent, crossed, diverged, gone, healthy, starting, stuck, unseen
from pardbg.watchdog.sim.faults.fault import Fault

FAULTS: tuple[Fault, ...] = (
    *healthy.FAULTS,
    *absent.FAULTS,
    *diverged.FAULTS,
    *crossed.FAULTS,
    *stuck.FAULTS,
    *gone.FAULTS,
    *starting.FAULTS,
    *unseen.FAULTS,
)
