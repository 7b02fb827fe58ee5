"""Which agents a scan asks: those that the user or the site names, else one on each node that Slurm names."""

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from pardbg.collectors.jobs.slurm.job import SlurmJob
from pardbg.watchdog.errors import InputError, ParseError
from pardbg.watchdog.model.evidence import Absence
from pardbg.watchdog.model.names import AbsenceReason
from pardbg.watchdog.transport.agent_access import AgentAccess
from pardbg.watchdog.transport.agent_addresses import USUAL_PORT, AgentAddress, name_nodes, read_addresses
from pardbg.watchdog.transport.agent_names import resolve_all

LOCAL = "local"
_SOCKET = "agent.sock"
_MOST_BYTES = 8 * 1024**2
_URLS = ("http://", "https://")
_DNS = "dns:"
_FORMS = "give n[01-64], n[01-64]:9475, a file with such lines, the URL of an http_sd, dns:NAME, a socket's path, or local"


@dataclass(frozen=True)
class AgentChoice:
    """What the user says: ``named`` is that of ``--agents``, None if he names none."""

    named: str | None = None
    access: AgentAccess = field(default_factory=AgentAccess)


@dataclass(frozen=True)
class AgentsRoute:
    """Whom to ask, and how. ``unreached``: nodes of the job of which no agent is known, and why."""

    addresses: tuple[AgentAddress, ...]
    access: AgentAccess
    unreached: dict[str, Absence] = field(default_factory=dict)


def choose_agents(choice: AgentChoice, slurm_job: SlurmJob | None) -> AgentsRoute:
    """Reads the list. Of a Slurm job only the agents of its nodes are asked.

    Raises:
        InputError: if there is none, or it cannot be read.
    """
    if choice.named is None:
        if slurm_job is None:
            raise InputError("--via agents needs to know the agents", remedy=f"{_FORMS}: --agents LIST, or PARDBG_AGENTS")
        return AgentsRoute(name_nodes((node, USUAL_PORT) for node in slurm_job.nodes), choice.access)
    if (socket := _socket(choice.named)) is not None:
        return AgentsRoute((AgentAddress(node=os.uname().nodename, socket=socket),), choice.access)
    addresses = read_agents(choice.named, choice.access)
    if not addresses:
        raise InputError(f"--agents {choice.named[:80]!r} names no agent", remedy=_FORMS)
    return AgentsRoute(addresses, choice.access) if slurm_job is None else _of_job(addresses, choice.access, slurm_job)


def _of_job(addresses: tuple[AgentAddress, ...], access: AgentAccess, job: SlurmJob) -> AgentsRoute:
    """Agents of the job's nodes, called as Slurm calls them. Where no name is one of Slurm's, all are asked."""
    by_name = {_short(address.host): address for address in addresses}
    known = {node: by_name[_short(node)] for node in job.nodes if _short(node) in by_name}
    if not known:
        return AgentsRoute(addresses, access)
    missing = Absence(reason=AbsenceReason.UNREACHABLE, detail="no agent on it is named (--agents)")
    named = tuple(replace(address, node=node) for node, address in known.items())
    return AgentsRoute(named, access, {node: missing for node in job.nodes if node not in known})


def _short(host: str) -> str:
    """Without its domain; of an address nothing is cut."""
    return host if host.replace(".", "").isdecimal() or ":" in host else host.partition(".")[0]


def read_agents(named: str, access: AgentAccess) -> tuple[AgentAddress, ...]:
    """The agents of a list, a file, an http_sd, or behind a name: ``dns:pardbg.monitoring.svc:9475``.

    Raises:
        InputError: if it cannot be read.
    """
    try:
        if named.startswith(_DNS):
            return resolve_all(named.removeprefix(_DNS))
        if named.startswith(_URLS):
            from pardbg.watchdog.transport.agent_discovery import fetch_list  # noqa: PLC0415 - aiohttp takes 0.3 s

            return read_addresses(fetch_list(named, access))
        path = Path(named)
        is_file = ("/" in named or path.suffix in {".json", ".txt"}) and "[" not in named
        return read_addresses(_text(path) if is_file else named)
    except ParseError as error:
        raise InputError(f"--agents {named[:80]!r}: {error}", remedy=_FORMS) from error


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise InputError(f"--agents: {path} is no regular file", remedy=_FORMS)
            return file.read(_MOST_BYTES).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        told = error.strerror if isinstance(error, OSError) else "it is no text"
        raise InputError(f"--agents: cannot read {path}: {told}", remedy=_FORMS) from error


def _socket(named: str) -> str | None:
    """The path of the socket that is meant; of the machine's agent before the user's own."""
    path = Path(named)
    if named != LOCAL:
        return named if _is_socket(path) else None
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    places = [
        Path("/run/pardbg") / _SOCKET,
        Path("/var/lib/pardbg") / _SOCKET,
        state / "pardbg" / os.uname().nodename / _SOCKET,
    ]
    found = next((str(place) for place in places if place.is_socket()), None)
    if found is None:
        told = f"no agent listens on this machine: there is no {places[0]}"
        raise InputError(told, remedy="start `pardbg agent`; with another socket, give its path: --agents /PATH/agent.sock")
    return found


def _is_socket(path: Path) -> bool:
    try:
        return path.is_socket()
    except (OSError, ValueError):  # a list of hosts may be longer than a name may be
        return False
