"""From the options of `pardbg scan` to a report."""

import time
from dataclasses import dataclass
from pathlib import Path

from pardbg.collectors.jobs.job_ids import check_job_name
from pardbg.collectors.jobs.query import JobQuery
from pardbg.watchdog.errors import InputError
from pardbg.watchdog.positions.rules import CauseRule
from pardbg.watchdog.scan.attaching import Policy
from pardbg.watchdog.scan.here import Elsewhere, scan_here
from pardbg.watchdog.scan.kubernetes_ended import scan_kubernetes_ended
from pardbg.watchdog.scan.nodes.everywhere import scan_nodes
from pardbg.watchdog.scan.nodes.reaching import Via, choose_route
from pardbg.watchdog.scan.nodes.through_agents import AgentChoice
from pardbg.watchdog.scan.saving import make_folder, save_evidence
from pardbg.watchdog.scan.scan import Progress, Scanned, Settings
from pardbg.watchdog.scan.slurm_ended import scan_slurm_ended
from pardbg.watchdog.transport.agent_access import AgentAccess

_NOTHING_REMOTE = "--remote-command had no use: only this machine was looked at"


@dataclass(frozen=True)
class Request:
    """The options, as the command line names them. ``is_remote_typed``: --remote-command is not from the environment."""

    job: str | None = None
    pids: tuple[int, ...] = ()
    is_local: bool = False
    world_size: int | None = None
    via: str = "auto"
    attach: str = "auto"
    is_kept: bool = False
    timeout_s: float = 60.0
    interval_s: float | None = None
    rules: tuple[CauseRule, ...] | None = None
    folder: Path | None = None
    hosts: str | None = None
    remote_command: str | None = None
    is_remote_typed: bool = False
    agents: str | None = None
    token_file: Path | None = None
    tls_ca: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    tls_name: str | None = None
    has_munge: bool | None = None
    munge_socket: str = ""


def run_scan(request: Request, progress: Progress) -> Scanned:
    """Scans a job that runs or, if no rank of it does, what it has left; a folder for the evidence is made first.

    Raises:
        InputError: if the options name no job, several, or a folder that cannot be used.
    """
    began_s = time.monotonic()
    check_options(request)
    if request.folder is not None:
        make_folder(request.folder, "give another --save: evidence of two scans must not mix")
    query = JobQuery(job=request.job, pids=request.pids, world_size=request.world_size)
    route = choose_route(
        Via(request.via),
        request.job,
        request.hosts,
        request.remote_command,
        agents=_agents(request),
        within_s=request.timeout_s,
    )
    settings = Settings(
        timeout_s=request.timeout_s,
        began_s=began_s,
        interval_s=request.interval_s,
        rules=request.rules,
        policy=Policy(request.attach),
        is_kept=request.is_kept,
    )
    if route.slurm_job is not None and route.is_slurms_alone:
        return scan_slurm_ended(route.slurm_job, query, settings, progress)
    if route.kubernetes_job is not None and not route.kubernetes_job.running:
        return scan_kubernetes_ended(route.kubernetes_job, query, settings, progress)
    if route.way is None and route.agents is None:
        notes = (_NOTHING_REMOTE,) if request.is_remote_typed else ()
        return scan_here(query, Elsewhere(route.problem, route.unseen, notes), settings, progress)
    return scan_nodes(query, route, settings, progress)


def _agents(request: Request) -> AgentChoice:
    access = AgentAccess(
        token_file=request.token_file,
        tls_ca=request.tls_ca,
        tls_cert=request.tls_cert,
        tls_key=request.tls_key,
        tls_name=request.tls_name,
        has_munge=request.has_munge,
        munge_socket=request.munge_socket,
    )
    return AgentChoice(request.agents, access)


def check_options(request: Request) -> None:
    """Sees that the options go together.

    Raises:
        InputError: if they do not say which job, or say where it runs in two ways.
    """
    named = [request.job is not None, bool(request.pids), request.is_local]
    if sum(named) != 1:
        raise InputError("say which job: exactly one of --job ID, --pid PID and --local", remedy="pardbg scan --local")
    if request.hosts is not None and request.job is None:
        raise InputError("--hosts needs the --job that runs there", remedy="pardbg scan --job ID --hosts n[01-64]")
    if request.is_remote_typed and (request.job is None or request.via == Via.LOCAL.value):
        raise InputError(
            "--remote-command is for other nodes, and this looks at this machine", remedy="leave it out, or --job ID"
        )
    if request.job is not None:
        check_job_name(request.job)


def keep_evidence(request: Request, scanned: Scanned) -> None:
    """Saves what was seen, if that was asked for: after the verdict has been told, since a full disk may be why it hangs."""
    if request.folder is not None:
        save_evidence(scanned, request.folder)
