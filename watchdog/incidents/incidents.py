"""The incidents of one agent: opened, brought up to date, closed; kept on the disk with their evidence, and told.

Methods may be called from any thread and do not wait for the disk: one worker does what is written, in order. What it has
written survives SIGKILL; what it has not, the next agent finds out again, for the job still hangs. A full disk or a corrupt
database costs nothing but evidence in files: see `keeper.py`. Receivers are told after the incident was written.
"""

import itertools
import threading
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from pardbg.watchdog.incidents.clock import Clock, as_rfc3339
from pardbg.watchdog.incidents.evidence import Evidences, Retention
from pardbg.watchdog.incidents.history import with_history
from pardbg.watchdog.incidents.ids import new_id
from pardbg.watchdog.incidents.keeper import Keeper
from pardbg.watchdog.incidents.letters import Event
from pardbg.watchdog.incidents.outbox import Outbox, letters_of
from pardbg.watchdog.incidents.receivers import Receiver
from pardbg.watchdog.incidents.rows import culprit_devices, culprit_hosts
from pardbg.watchdog.incidents.sameness import say_the_same
from pardbg.watchdog.incidents.worker import Worker
from pardbg.watchdog.model.incident import Incident, IncidentState
from pardbg.watchdog.model.report import Report

_SETTLE_EVERY_S = 5.0
_TIDY_EVERY_S = 3600.0
_GOODBYE_S = 5.0
_EVENTS = {IncidentState.RECOVERED: Event.RECOVERED, IncidentState.ENDED: Event.ENDED}


class Incidents:
    """Call `tick` each second or so; close it.

    Args:
        folder: the state folder; no other agent may use it.
        host: this agent's name.
        receivers: who is told.
        clock: the time.
        retention: what is kept of incidents that are over.
    """

    def __init__(
        self,
        folder: Path,
        host: str,
        receivers: Sequence[Receiver] = (),
        clock: Clock | None = None,
        retention: Retention | None = None,
    ) -> None:
        self._host, self._clock, self._retention = host, clock or Clock(), retention or Retention()
        self._keeper, self._evidences = Keeper(folder), Evidences(folder)
        self._evidences.begin()
        self._outbox = Outbox(receivers, self._keeper, self._clock)
        self._lock = threading.Lock()
        self._open = {incident.world: incident for incident in self._keeper.open_ones()}
        self._ids = set(self._keeper.ids)
        self._fresh: set[str] = set()
        self._settle_at_s = self._clock.steady_s()
        self._tidy_at_s = self._clock.steady_s()
        self._worker = Worker("incidents")

    def adopt(self, world: str) -> Incident | None:
        """The open incident of one launch of a job, also one that an agent before this one has opened."""
        with self._lock:
            return self._open.get(world)

    def open_ones(self) -> tuple[Incident, ...]:
        """All that are open, also of jobs that have ended while no agent ran."""
        with self._lock:
            return tuple(self._open.values())

    def new_folder(self, world: str) -> Path | None:
        """Where a scan of a world may save its evidence; it makes the folder. None: there is no room, it saves nothing."""
        return self._evidences.partial(self._id_for(world)) if self._evidences.has_room else None

    def drop(self, folder: Path | None) -> None:
        """A scan has found nothing that is worth keeping."""
        if folder is not None:
            self._fresh.discard(self._evidences.id_of(folder))
            self._worker.do(lambda: self._evidences.drop(folder))

    def keep(self, world: str, report: Report, folder: Path | None = None, job: str = "local") -> Incident:
        """A scan has found a fault: opens its incident, or brings the open one up to date.

        Args:
            world: which launch of which job: ``store|size|attempt``.
            report: what the scan says.
            folder: where it has saved its evidence, of `new_folder`; the first scan's stays, the newest lies beside it.
            job: its name, if the report has none.

        Returns:
            The incident. A note on earlier ones of the same hosts is added later: see `adopt`.
        """
        now = as_rfc3339(self._clock.wall_s())
        with self._lock:
            before = self._open.get(world)
            incident_id = before.id if before else self._fresh_id(folder) or self._new_id(world)
            incident = Incident(
                id=incident_id,
                job=report.job.id or job,
                attempt=report.job.attempt,
                world=world,
                host=self._host,
                state=IncidentState.OPEN,
                opened_at=before.opened_at if before else now,
                updated_at=now,
                report=report,
            )
            self._open[world] = incident
        self._worker.do(lambda: self._write(incident, before, folder))
        return incident

    def recover(self, world: str) -> Incident | None:
        """The job goes on by itself: closes its incident, if one is open."""
        return self._close(world, IncidentState.RECOVERED)

    def end(self, world: str) -> Incident | None:
        """No rank of the job is left: closes its incident, if one is open."""
        return self._close(world, IncidentState.ENDED)

    def evidence_of(self, incident_id: str) -> Path | None:
        """The folder with the evidence of an incident, if it is kept."""
        return self._evidences.find(incident_id)

    def tick(self) -> None:
        """Has written what could not be written, and old things removed, when it is time."""
        now_s = self._clock.steady_s()
        if now_s >= self._settle_at_s:
            self._settle_at_s = now_s + _SETTLE_EVERY_S
            self._worker.do(self._keeper.settle)
            self._worker.do(self._evidences.look_for_room)
        if now_s >= self._tidy_at_s:
            self._tidy_at_s = now_s + _TIDY_EVERY_S
            self._worker.do(self._tidy)

    @property
    def problems(self) -> dict[str, str]:
        """What is wrong: ``store``, ``store_before``, ``evidence``, ``notifications``."""
        slow_s = self._worker.slow_s
        words = {
            "store": self._worker.fault
            or (f"the disk has not answered for {slow_s:.0f} s" if slow_s else self._keeper.problem),
            "store_before": self._keeper.notice,
            "evidence": self._evidences.problem,
            "notifications": "; ".join(self._outbox.problems()),
        }
        return {name: problem for name, problem in words.items() if problem}

    @property
    def counts(self) -> dict[str, int]:
        """Since it was opened: ``notifications`` sent, ``retries``, notifications ``given_up``."""
        counts = self._outbox.counts()
        return {"notifications": counts["sent"], "retries": counts["retries"], "given_up": counts["given_up"]}

    @property
    def unsent(self) -> int:
        """Letters that wait for their receiver."""
        return self._keeper.unsent

    def wait(self, timeout_s: float) -> bool:
        """Whether all that was asked for so far is done within this time."""
        return self._worker.wait(timeout_s)

    def close(self) -> None:
        """Writes what is left, and ends. Open incidents stay open, letters wait for the next agent."""
        is_done = self._worker.close(_GOODBYE_S)
        self._outbox.close()
        if is_done:  # else it holds the database
            self._keeper.close()

    def _close(self, world: str, state: IncidentState) -> Incident | None:
        with self._lock:
            known = self._open.pop(world, None)
        if known is None:
            return None
        closed = replace(known, state=state, updated_at=as_rfc3339(self._clock.wall_s()))
        self._worker.do(lambda: self._end(closed))
        return closed

    def _write(self, incident: Incident, before: Incident | None, folder: Path | None) -> None:
        report = incident.report
        earlier = self._keeper.earlier(culprit_hosts(report), culprit_devices(report), incident.opened_at)
        whole = replace(incident, report=with_history(report, earlier))
        with self._lock:
            if self._open.get(incident.world) is incident:
                self._open[incident.world] = whole
        if folder is not None:
            self._evidences.keep(folder, incident.id)
        is_news = before is None or not say_the_same(before.report, report)
        event = Event.UPDATED if before else Event.OPENED
        self._save(whole, event if is_news else None, before)

    def _end(self, incident: Incident) -> None:
        self._save(incident, _EVENTS[incident.state], None)

    def _save(self, incident: Incident, event: Event | None, before: Incident | None) -> None:
        now_s = self._clock.wall_s()
        letters = letters_of(self._outbox.receivers, event, incident, before, now_s) if event else ()
        self._keeper.save(incident, letters)
        self._outbox.wake()

    def _tidy(self) -> None:
        oldest_s = self._clock.wall_s() - self._retention.age_s
        self._keeper.prune(closed_before=as_rfc3339(oldest_s), most_bytes=self._retention.database_bytes)
        self._evidences.prune([incident.id for incident in self.open_ones()], oldest_s, self._retention.evidence_bytes)

    def _id_for(self, world: str) -> str:
        """That of the open incident, or of one that may come."""
        with self._lock:
            known = self._open.get(world)
            if known:
                return known.id
            fresh = self._new_id(world)
            self._fresh.add(fresh)
            return fresh

    def _fresh_id(self, folder: Path | None) -> str:
        """The id that a folder was made for, unless it is that of an incident which has been closed since; then none."""
        found = self._evidences.id_of(folder)
        if found not in self._fresh:
            return ""
        self._fresh.discard(found)
        return found

    def _new_id(self, world: str) -> str:
        """One that no other incident has."""
        now_s = self._clock.wall_s()
        found = next(one for turn in itertools.count() if (one := new_id(now_s, world, turn)) not in self._ids)
        self._ids.add(found)
        return found
