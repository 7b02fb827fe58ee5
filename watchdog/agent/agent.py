"""The agent: looks at every rank each second, and lets a scan judge what it suspects. One thread; `tick` is one look.

What it does to a job is told in `patient.py`, `rank_routing.py` (always) and `scanning.py` (when it suspects). If it is killed,
nothing of it stays but what it has stored; the next one finds the same hang again and goes on with the same incident.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable

from pardbg import __version__
from pardbg.collectors.live.moment import now_rfc3339
from pardbg.watchdog.agent.judging import Company, Judging
from pardbg.watchdog.agent.settings import Settings
from pardbg.watchdog.agent.ward import Ward
from pardbg.watchdog.agent.wards import Wards
from pardbg.watchdog.incidents.clock import from_rfc3339
from pardbg.watchdog.incidents.incidents import Incidents
from pardbg.watchdog.model.incident import Incident
from pardbg.watchdog.model.watched import AgentSnapshot, JobState

_log = logging.getLogger("pardbg.agent")
_AT_ONCE = 2
_EVENTS = ("scans", "failed_scans")
_MOST_WARNINGS = 1000
_LEEWAY_S = 2.0
"""Start times of processes are known to that."""


class Agent:
    """Call `tick` again and again; any thread may read `snapshot`. Close it."""

    def __init__(self, settings: Settings, incidents: Incidents, company: Company) -> None:
        self._settings, self._incidents = settings, incidents
        self._wards = Wards(settings.node, settings.limits, settings.patience, self._leave)
        self._counts: Counter[str] = Counter(dict.fromkeys(_EVENTS, 0))
        self._judges = [Judging(settings, incidents, company, self._tell, self._counts) for _ in range(_AT_ONCE)]
        self._problems: dict[str, str] = {}
        self._warnings: list[str] = []
        self.snapshot = AgentSnapshot(host=settings.host, version=__version__, taken_at=now_rfc3339())

    def tick(self, clock: Callable[[], float] = time.monotonic) -> None:
        """One look at everything. Nothing that may be wrong with the world ends it."""
        try:
            self._wards.look(clock())
        except OSError as error:
            self._tell("census", error.strerror or str(error))
        else:
            self._tell("census", "")
        self._tell("blind", "; ".join(self._wards.unseen))
        self._tell("routing", "; ".join(ward.trouble for ward in self._wards if ward.trouble))
        warnings, self._warnings = self._warnings, []
        for ward in self._wards:
            if ward.key in warnings:
                ward.warn(clock())
        for judging in self._judges:
            judging.tick(self._wards, clock())
        self._settle()
        self._incidents.tick()
        self.snapshot = self._describe()

    def warn(self, world: str) -> None:
        """Another agent suspects a job. Any thread may call it."""
        if len(self._warnings) < _MOST_WARNINGS:
            self._warnings.append(world)

    def close(self) -> None:
        """Leaves everything as it is: open incidents stay open."""
        for judging in self._judges:
            judging.close()
        self._wards.close()

    def _settle(self) -> None:
        """Closes incidents of jobs that go on or have ended, and goes on with those that an agent before this one opened."""
        wards = {ward.key: ward for ward in self._wards}
        for incident in self._incidents.open_ones():
            ward = wards.get(incident.world)
            if ward is None or (ward.watch.state is JobState.HEALTHY and _is_successor(ward, incident)):
                _log.info("%s: it has ended", incident.job)
                self._incidents.end(incident.world)
            elif ward.watch.state is JobState.RECOVERED:
                _log.info("%s: it goes on", incident.job)
                self._incidents.recover(incident.world)
            elif ward.watch.state is JobState.HEALTHY:
                ward.resume(time.monotonic())

    def _leave(self, ward: Ward) -> None:
        for judging in self._judges:
            judging.forget(ward)

    def _tell(self, name: str, problem: str) -> None:
        """A problem is logged once when it comes; it is shown until it has gone."""
        if problem and self._problems.get(name) != problem:
            _log.warning("%s: %s", name, problem)
        self._problems = {other: words for other, words in self._problems.items() if other != name}
        if problem:
            self._problems[name] = problem

    def _describe(self) -> AgentSnapshot:
        return AgentSnapshot(
            host=self._settings.host,
            version=__version__,
            taken_at=now_rfc3339(),
            jobs=tuple(ward.describe(self._incidents.adopt(ward.key)) for ward in self._wards),
            problems={**self._incidents.problems, **self._problems},
            counts={**self._incidents.counts, **self._counts},
            unsent=self._incidents.unsent,
        )


def _is_successor(ward: Ward, incident: Incident) -> bool:
    """Whether a job that an agent before this one knew was started anew since.

    Of one that this agent saw hang it is not asked: the wall's clock may have been set since.
    """
    return ward.youngest_s > from_rfc3339(incident.opened_at) + _LEEWAY_S
