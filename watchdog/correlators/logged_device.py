"""A rank's GPU failed, by the kernel log of its host, and ranks' logs alone show what came of it: no recorder was read.

A fatal error of one rank's GPU explains why all of them gave up a wait. It is said of one rank only: where several GPUs have
errors, it may be the fabric. Of an error that programs mostly make themselves the rank's own log speaks, or nobody.
"""

from collections.abc import Iterable
from datetime import datetime, timezone

from pardbg.watchdog.correlators.device_at_fault import ADVICE, error_words
from pardbg.watchdog.correlators.device_stuck import ask_devices
from pardbg.watchdog.correlators.kernel_words import kernel_lines
from pardbg.watchdog.correlators.log_words import MAX_LINES, are_logs_alone, log_line
from pardbg.watchdog.correlators.situation import NS_PER_S, Situation
from pardbg.watchdog.correlators.wording import count_ranks, wait_verb
from pardbg.watchdog.graph.device_faults import fault_of, is_of_program
from pardbg.watchdog.model.device import XidSeen
from pardbg.watchdog.model.log_event import CollectiveTimeout
from pardbg.watchdog.model.names import Cause, Confidence, Kind
from pardbg.watchdog.model.report import Finding

NS_PER_MS = 1_000_000
YEAR_NS = 366 * 86_400 * NS_PER_S
SLACK_NS = 660 * NS_PER_S  # clocks of logs are rounded, and a GPU may fail some time before the next operation needs it


def correlate(situation: Situation) -> Iterable[Finding]:
    """At most one finding."""
    devices = situation.view.devices
    if not devices or situation.view.ended_ranks or not are_logs_alone(situation):
        return
    waits = {rank: wait for found in situation.log_waits.values() for rank, wait in found.items()}
    faults = {rank: fault for rank, seen in devices.items() if (fault := fault_of(seen, lambda xid: _is_near(xid, waits)))}
    if len(faults) != 1:
        return
    ((rank, fault),) = faults.items()
    if fault is Cause.XID and is_of_program(devices[rank]):
        return
    others = situation.standings.keys() - {rank}
    if others and others <= waits.keys() and not situation.own_failures.keys() - {rank}:
        yield _describe(situation, rank, fault, tuple(sorted(others)))


def _is_near(xid: XidSeen, waits: dict[int, CollectiveTimeout]) -> bool:
    """Whether an error is of about the time at which the first wait began, as far as both are known."""
    began = [wait.at_ns - (wait.ran_ms or 0) * NS_PER_MS for wait in waits.values() if wait.at_ns is not None]
    if xid.at_ns is None or not began:
        return True
    apart_ns = abs(xid.at_ns - min(began)) if min(began) > YEAR_NS else abs(_in_its_year(xid.at_ns) - min(began))
    return apart_ns <= SLACK_NS


def _in_its_year(at_ns: int) -> int:
    """A moment as watchdogs write it, who name no year: counted from the beginning of a leap year."""
    moment = datetime.fromtimestamp(at_ns / NS_PER_S, tz=timezone.utc)
    return int((moment.replace(year=2000) - datetime(2000, 1, 1, tzinfo=timezone.utc)).total_seconds()) * NS_PER_S


def _describe(situation: Situation, rank: int, fault: Cause, victims: tuple[int, ...]) -> Finding:
    trouble = "is lost" if fault is Cause.GPU_LOST else error_words(situation.view.devices[rank], fault)
    lines = situation.logs.first_lines((rank, *victims), (CollectiveTimeout,))
    waiting = f"; {count_ranks(victims)} {wait_verb(victims)} in vain, by their logs" if victims else ""
    return Finding(
        kind=Kind.DEVICE_STUCK,
        cause=fault,
        confidence=Confidence.SUGGESTED if fault is Cause.XID else Confidence.SUPPORTED,
        culprits=(situation.subject(rank, f"its GPU {trouble}"),),
        victims=victims,
        claim=f"the GPU of rank {rank} {trouble}{waiting}",
        evidence=(*kernel_lines(situation, rank), *map(log_line, lines[:MAX_LINES])),
        advice=(ADVICE[fault],),
        actions=tuple(ask_devices(situation, (rank,))),
    )
