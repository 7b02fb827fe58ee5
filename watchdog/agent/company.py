"""The other agents of a job: those that the site names, else one on each node that Slurm names.

Asked only while a job is suspect, and only for what they hold anyway (`GET /v1/jobs`). Deadline: `ASK_S` an agent.
"""

import time
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

ASK_S = 2.0
_SLURM_S = 10.0


class _Jobs(msgspec.Struct):
    jobs: tuple[WatchedJob, ...] = ()


@dataclass
class Neighbours:
    """See `Company`.

    Attributes:
        own_name: of this machine among the nodes; ``own_port`` that of this agent: the others are taken to have the same.
        named: the agents that the site names, in the order of the nodes; empty: Slurm is asked.
        access: how this agent shows the others who it is; ``options``: the same for `pardbg scan`.
    """

    own_name: str
    own_port: int
    named: tuple[AgentAddress, ...] = ()
    access: AgentAccess = field(default_factory=AgentAccess)
    options: tuple[str, ...] = ()
    _of_world: dict[str, tuple[AgentAddress, ...]] = field(default_factory=dict)
    _leading: dict[str, Leading] = field(default_factory=dict)

    def part_of(self, ward: Ward) -> Part:
        """See `Company`."""
        lowest = ward.lowest
        if ward.is_all_here or lowest is None:
            return Part.LEAD
        key = ward.key
        agents = {address.netloc: address for address in self._before(self._agents_of(ward))}
        leading = self._leading.get(key)
        if leading is None or list(leading.before) != list(agents):
            leading = self._leading[key] = Leading(tuple(agents), lowest, lambda netloc: self._ask(agents[netloc], key))
        leading.lowest = lowest
        return leading.decide()

    def options_for(self, ward: Ward) -> tuple[str, ...]:
        """See `Company`: without a name that others know it by, or without others, only this machine can be scanned."""
        agents = self._agents_of(ward)
        if ward.is_all_here or not ward.name or not agents:
            return ward.options
        listed = ",".join(address.netloc for address in agents)
        return ("--job", ward.name, "--via", "agents", "--agents", listed, *self.options)

    def _agents_of(self, ward: Ward) -> tuple[AgentAddress, ...]:
        """All agents of a job, this one among them, in order."""
        if self.named:
            return self.named
        key = ward.key
        if key not in self._of_world:
            self._of_world = {key: self._ask_slurm(ward)}  # of one job at a time
        return self._of_world[key]

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
        for number, address in enumerate(agents):
            if address.host == self.own_name or (address.is_here and address.port == self.own_port):
                return agents[:number]
        return agents

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
