"""The list of correlators. Adding one is adding its file and its line here; the order does not matter."""

from collections.abc import Callable, Iterable

from pardbg.watchdog.correlators import (
    comm_stuck,
    config_mismatch,
    cycles,
    dead_rank,
    desync,
    desync_by_stacks,
    device_at_fault,
    device_stuck,
    ended_by_scheduler,
    ended_from_outside,
    group_mismatch,
    missing_participant,
    unexplained,
    unwound,
)
from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.model.report import Finding

Correlator = Callable[[Situation], Iterable[Finding]]

CORRELATORS: tuple[Correlator, ...] = (
    ended_by_scheduler.correlate,
    dead_rank.correlate,
    unwound.correlate,
    device_stuck.correlate,
    device_at_fault.correlate,
    group_mismatch.correlate,
    cycles.correlate,
    desync.correlate,
    desync_by_stacks.correlate,
    missing_participant.correlate,
    comm_stuck.correlate,
    unexplained.correlate,
    ended_from_outside.correlate,
)

CORRELATORS_OF_ALL: tuple[Correlator, ...] = (config_mismatch.correlate,)
"""Those whose findings hold for a job that moves as well."""
