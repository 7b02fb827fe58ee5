"""From a suspicion to an answer, of one job at a time: who leads, then a scan, then what it has found.

An agent has a few of these, so that a job whose scan takes long does not keep the others waiting.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol

from pardbg.watchdog.agent.leading import Part
from pardbg.watchdog.agent.scanning import RunningScan, ScanFailedError
from pardbg.watchdog.agent.settings import Settings
from pardbg.watchdog.agent.ward import Ward
from pardbg.watchdog.incidents.incidents import Incidents
from pardbg.watchdog.model.report import Report

_log = logging.getLogger("pardbg.agent")


class Company(Protocol):
    """The other agents of a job."""

    def part_of(self, ward: Ward) -> Part:
        """What this agent has to do for it now. May take some seconds."""

    def options_for(self, ward: Ward) -> tuple[str, ...]:
        """How `pardbg scan` reaches all nodes of it."""


@dataclass
class Judging:
    """Call `tick` again and again. Close it."""

    settings: Settings
    incidents: Incidents
    company: Company
    tell: Callable[[str, str], None]
    counts: Counter[str]
    _ward: Ward | None = None
    _part: "Future[Part] | None" = None
    _scan: RunningScan | None = None
    _asking: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "leading"))

    def tick(self, wards: Iterable[Ward], now_s: float) -> None:
        """Goes on with the job at hand, or begins with the next one."""
        if self._ward is None:
            self._choose(wards, now_s)
        elif self._part is not None:
            self._ask(self._ward, self._part, now_s)
        elif self._scan is not None:
            self._hear(self._ward, self._scan, now_s)

    def forget(self, ward: Ward) -> None:
        """The job has ended here. A scan of it still ends by itself, and nobody hears it."""
        if self._ward is ward:
            self._drop()

    def close(self) -> None:
        """Ends a scan that runs."""
        self._drop()
        self._asking.shutdown(wait=False, cancel_futures=True)

    def _choose(self, wards: Iterable[Ward], now_s: float) -> None:
        self._ward = next((ward for ward in wards if not ward.is_in_hands and ward.watch.wants_scan(now_s)), None)
        if self._ward is not None:
            self._ward.is_in_hands = True
            self._part = self._asking.submit(self.company.part_of, self._ward)

    def _ask(self, ward: Ward, answer: "Future[Part]", now_s: float) -> None:
        """Acts on the part that this agent has, once that is known."""
        if not answer.done():
            return
        self._part, part = None, answer.result()
        if part is Part.LEAD and ward.watch.wants_scan(now_s):
            self._begin(ward, now_s)
            return
        if part is Part.FOLLOW:
            ward.follow(now_s)
        self._release()

    def _begin(self, ward: Ward, now_s: float) -> None:
        options = (*self.company.options_for(ward), "--attach", self.settings.attach)
        try:
            folder = self.incidents.new_folder(ward.key)
            self._scan = RunningScan(options, folder, now_s=now_s, timeout_s=self.settings.scan_timeout_s)
        except (ScanFailedError, OSError) as error:
            self._fail(ward, str(error), now_s)
            return
        self.counts["scans"] += 1
        _log.info("%s: ranks %s are silent: scanning", ward.title, sorted(ward.watch.silent))

    def _hear(self, ward: Ward, scan: RunningScan, now_s: float) -> None:
        try:
            report = scan.poll(now_s)
        except ScanFailedError as error:
            self._fail(ward, str(error), now_s)
            return
        if report is not None:
            self._scan = None
            self._release()
            self.tell("scan", "")
            self._take_in(ward, report, scan, now_s)

    def _take_in(self, ward: Ward, report: Report, scan: RunningScan, now_s: float) -> None:
        said = report.verdict.claim if report.verdict else "; ".join(report.notes)
        _log.info("%s: %s: %s", ward.title, report.status.value, said)
        if ward.judge(report, now_s):
            self.incidents.keep(ward.key, report, scan.folder, ward.title)
        else:
            self.incidents.drop(scan.folder)

    def _fail(self, ward: Ward, problem: str, now_s: float) -> None:
        self.counts["failed_scans"] += 1
        self.tell("scan", f"{ward.title}: {problem}")
        ward.watch.put_off(now_s)
        self._drop()

    def _drop(self) -> None:
        scan, self._scan, self._part = self._scan, None, None
        self._release()
        if scan is not None:
            scan.close()
            self.incidents.drop(scan.folder)

    def _release(self) -> None:
        ward, self._ward = self._ward, None
        if ward is not None:
            ward.is_in_hands = False
