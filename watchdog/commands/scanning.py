"""From the options of `pardbg scan` to a report."""

from dataclasses import dataclass
from pathlib import Path

from pardbg.collectors.jobs.find import find_world
from pardbg.collectors.jobs.query import JobQuery
from pardbg.watchdog.errors import AmbiguousJobError, InputError
from pardbg.watchdog.positions.rules import CauseRule
from pardbg.watchdog.scan.attaching import Policy
from pardbg.watchdog.scan.ended import add_ended_ranks, name_newest, scan_ended
from pardbg.watchdog.scan.kubernetes_ended import scan_kubernetes_ended
from pardbg.watchdog.scan.local_site import LocalSite
from pardbg.watchdog.scan.nodes.nodes_site import NodesSite
from pardbg.watchdog.scan.nodes.pods_site import PodsSite
from pardbg.watchdog.scan.nodes.reaching import Via, choose_route
from pardbg.watchdog.scan.saving import make_folder, save_evidence
from pardbg.watchdog.scan.scan import Progress, Scanned, Settings, scan
from pardbg.watchdog.scan.slurm_ended import scan_slurm_ended
from pardbg.watchdog.transport.conversation import Conversation


@dataclass(frozen=True)
class Request:
    """The options, as the command line names them."""

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


def run_scan(request: Request, progress: Progress) -> Scanned:
    """Scans a job that runs or, if no rank of it does, what it has left; a folder for the evidence is made first.

    Raises:
        InputError: if the options name no job, several, or a folder that cannot be used.
    """
    named = [request.job is not None, bool(request.pids), request.is_local]
    if sum(named) != 1:
        raise InputError("say which job: exactly one of --job ID, --pid PID and --local", remedy="pardbg scan --local")
    if request.folder is not None:
        make_folder(request.folder, "give another --save: evidence of two scans must not mix")
    query = JobQuery(job=request.job, pids=request.pids, world_size=request.world_size)
    settings = Settings(
        timeout_s=request.timeout_s,
        interval_s=request.interval_s,
        rules=request.rules,
        policy=Policy(request.attach),
        is_kept=request.is_kept,
    )
    if request.hosts is not None and request.job is None:
        raise InputError("--hosts needs the --job that runs there", remedy="pardbg scan --job ID --hosts n[01-64]")
    route = choose_route(Via(request.via), request.job, request.hosts, request.remote_command, within_s=request.timeout_s)
    if route.slurm_job is not None and not route.slurm_job.state.holds_nodes:
        return scan_slurm_ended(route.slurm_job, query, settings, progress)
    if route.kubernetes_job is not None and not route.kubernetes_job.running:
        return scan_kubernetes_ended(route.kubernetes_job, query, settings, progress)
    if route.way is None:
        return _scan_here(query, settings, progress, route.problem)
    with Conversation(route.way) as conversation:
        if route.kubernetes_job is not None:
            return scan(PodsSite(conversation, query, route.kubernetes_job), settings, progress)
        return scan(NodesSite(conversation, query, route.unreached), settings, progress)


def _scan_here(query: JobQuery, settings: Settings, progress: Progress, problem: str) -> Scanned:
    """On this machine. ``problem``: why the scheduler could not say where else."""
    try:
        return scan(LocalSite(lambda: add_ended_ranks(find_world(query))), settings, progress)
    except AmbiguousJobError:
        raise
    except InputError as error:
        if query.job is None and not query.pids:
            raise name_newest(error) from error
        ended = scan_ended(query, settings, progress)
        if ended is not None:
            return ended
        if problem:
            raise InputError(f"{problem}; nor {error}", remedy="look at the id: squeue --me") from error
        raise


def keep_evidence(request: Request, scanned: Scanned) -> None:
    """Saves what was seen, if that was asked for: after the verdict has been told, since a full disk may be why it hangs."""
    if request.folder is not None:
        save_evidence(scanned, request.folder)
