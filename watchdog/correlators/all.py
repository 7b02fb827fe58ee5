"""The list of correlators. Adding one is adding its file and its line here; the order does not matter."""

from collections.abc import Callable, Iterable

from pardbg.watchdog.correlators import (
    by_ras,
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
    ep_load,
    group_mismatch,
    handled_exception,
    host_device,
    logged_absence,
    logged_desync,
    logged_failure,
    logged_init,
    logged_network,
    logged_wait,
    logged_ways,
    missing_participant,
    routing,
    straggler,
    teardown_stuck,
    traced_kernels,
    traced_steps,
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
    handled_exception.correlate,
    teardown_stuck.correlate,
    device_stuck.correlate,
    device_at_fault.correlate,
    host_device.correlate,
    group_mismatch.correlate,
    cycles.correlate,
    desync.correlate,
    desync_by_stacks.correlate,
    missing_participant.correlate,
    comm_stuck.correlate,
    by_ras.correlate,
    unexplained.correlate,
    ended_from_outside.correlate,
    logged_failure.correlate,
    logged_desync.correlate,
    logged_init.correlate,
    logged_absence.correlate,
    logged_network.correlate,
    logged_wait.correlate,
)

CORRELATORS_OF_ALL: tuple[Correlator, ...] = (
    config_mismatch.correlate,
    logged_ways.correlate,
    straggler.correlate,
    traced_steps.correlate,
    traced_kernels.correlate,
    routing.correlate,
    ep_load.correlate,
)
"""Those whose findings hold for a job that moves as well."""
