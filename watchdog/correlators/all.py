"""The list of correlators. Adding one is adding its file and its line here; the order does not matter."""

from collections.abc import Callable, Iterable

from pardbg.watchdog.correlators import (
    aborted_by_device,
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
    foreign_wait,
    group_mismatch,
    handled_exception,
    host_device,
    jammed_launches,
    logged_absence,
    logged_desync,
    logged_device,
    logged_failure,
    logged_init,
    logged_loss,
    logged_network,
    logged_wait,
    logged_ways,
    missing_participant,
    routing,
    slow_by_signs,
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
    aborted_by_device.correlate,
    unwound.correlate,
    handled_exception.correlate,
    teardown_stuck.correlate,
    device_stuck.correlate,
    device_at_fault.correlate,
    host_device.correlate,
    jammed_launches.correlate,
    group_mismatch.correlate,
    cycles.correlate,
    desync.correlate,
    desync_by_stacks.correlate,
    missing_participant.correlate,
    comm_stuck.correlate,
    foreign_wait.correlate,
    by_ras.correlate,
    unexplained.correlate,
    ended_from_outside.correlate,
    logged_failure.correlate,
    logged_desync.correlate,
    logged_device.correlate,
    logged_init.correlate,
    logged_absence.correlate,
    logged_network.correlate,
    logged_wait.correlate,
    logged_loss.correlate,
)

CORRELATORS_OF_ALL: tuple[Correlator, ...] = (
    config_mismatch.correlate,
    logged_ways.correlate,
    straggler.correlate,
    slow_by_signs.correlate,
    traced_steps.correlate,
    traced_kernels.correlate,
    routing.correlate,
    ep_load.correlate,
)
"""Those whose findings hold for a job that moves as well."""
