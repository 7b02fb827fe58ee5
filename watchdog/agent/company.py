"""The other agents of a job: those that the site names, else one on each node that Slurm names.

Asked only while a job is suspect, and only for what they hold anyway (`GET /v1/jobs`). Deadline: `ASK_S` an agent.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import quote

import msgspec

from pardbg.collectors.jobs.slurm.find import find_slurm_job
from pardbg.watchdog.agent.leading import Leading, Part, Word
from pardbg.watchdog.agent.ward import Ward
from pardbg.watchdog.errors import InputError
from pardbg.watchdog.model.evidence import Absence
from pardbg.watchdog.model.names import JobSource
from pardbg.watchdog.model.watched import WatchedJob
from pardbg.watchdog.transport.agent_access import AgentAccess
from pardbg.watchdog.transport.agent_addresses import AgentAddress, name_nodes
from pardbg.watchdog.transport.agent_words import JOBS_PATH
from pardbg.watchdog.transport.agents import Agents

_log = logging.getLogger("pardbg.agent")
ASK_S = 2.0
_SLURM_S = 10.0
_MOST_JOBS = 32


class _Jobs(msgspec.Struct):
    jobs: tuple[WatchedJob, ...] = ()


@dataclass
class _Job:
    """What is known of one job. ``agents`` are all of it, this one among them."""

    agents: tuple[AgentAddress, ...]
    leading: Leading


@dataclass
class Neighbours:
    """See `Company`. Threads may share it.

    Attributes:
        own_name: of this machine among the nodes; ``own_port`` that of this agent: the others are taken to have the same.
        site: gives the agents that the site names, in no order; none: Slurm is asked, which has the order of the ranks.
        socket: gives the own socket if this agent sees GPUs: then scans of this machine go through it; else nothing.
        access: how this agent shows the others who it is; ``options``: the same for `pardbg scan`.
    """

    own_name: str
    own_port: int
    site: Callable[[], tuple[AgentAddress, ...]] = tuple
    access: AgentAccess = field(default_factory=AgentAccess)
    options: tuple[str, ...] = ()
    socket: Callable[[], str] = str
    _jobs: dict[str, _Job] = field(default_factory=dict)

    def part_of(self, ward: Ward) -> Part:
        """See `Company`."""
        lowest = ward.lowest
        if ward.is_all_here or lowest is None:
            return Part.LEAD
        leading = self._job(ward).leading
        leading.lowest = lowest
        return leading.decide()

    def options_for(self, ward: Ward) -> tuple[str, ...]:
        """See `Company`: without a name that others know it by, or without others, only this machine can be scanned."""
        agents = () if ward.is_all_here or not ward.name else self._job(ward).agents
        if not agents:
            return (*ward.options[:2], "--via", "agents", "--agents", socket) if (socket := self.socket()) else ward.options
        listed = ",".join(address.netloc for address in agents)
        return ("--job", ward.name, "--via", "agents", "--agents", listed, *self.options)

    def _job(self, ward: Ward) -> _Job:
        """Asked for anew once the job is suspect anew: pods come and go."""
        key = f"{ward.key} {ward.state_since}"
        if key not in self._jobs:
            for old in list(self._jobs)[: -_MOST_JOBS + 1]:
                self._jobs.pop(old, None)
            agents = self._site()
            asked = self._others(agents) if agents else self._before(agents := self._ask_slurm(ward))
            by_name = {address.netloc: address for address in asked}
            leading = Leading(tuple(by_name), ward.lowest or 0, lambda netloc: self._ask(by_name[netloc], ward.key))
            self._jobs[key] = _Job(agents, leading)
        return self._jobs[key]

    def _site(self) -> tuple[AgentAddress, ...]:
        try:
            return self.site()
        except InputError as error:
            _log.warning("the other agents are not known: %s", error)
            return ()

    def _ask_slurm(self, ward: Ward) -> tuple[AgentAddress, ...]:
        name = next((name for source, name in ward.world.job_ids if source is JobSource.SLURM), None)
        if name is None:
            return ()
        try:
            job = find_slurm_job(name, time.monotonic() + _SLURM_S)
        except InputError:
            return ()
        return () if isinstance(job, Absence) else name_nodes((node, self.own_port) for node in job.nodes)

    def _before(self, agents: tuple[AgentAddress, ...]) -> tuple[AgentAddress, ...]:
        """Those before this one, all if it is not among them."""
        own = next((number for number, address in enumerate(agents) if self._is_own(address)), len(agents))
        return agents[:own]

    def _others(self, agents: tuple[AgentAddress, ...]) -> tuple[AgentAddress, ...]:
        return tuple(address for address in agents if not self._is_own(address))

    def _is_own(self, address: AgentAddress) -> bool:
        return address.host == self.own_name or (address.is_here and address.port == self.own_port)

    def _ask(self, address: AgentAddress, key: str) -> Word | None:
        """What one agent says of a job.

        Raises:
            OSError: if it says nothing that can be used.
        """
        with Agents((address,), self.access) as agents:
            answer = next(iter(agents.get(f"{JOBS_PATH}?suspect={quote(key)}", time.monotonic() + ASK_S)))
        if answer.absence is not None:
            raise OSError(answer.absence.detail)
        try:
            jobs = msgspec.json.decode(answer.data or b"", type=_Jobs).jobs
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise OSError(f"it says what no agent says: {error}") from error
        job = next((job for job in jobs if job.world == key), None)
        if job is None or not job.ranks:
            return None
        return Word(min(rank.rank for rank in job.ranks), job.incident.id if job.incident else "")
