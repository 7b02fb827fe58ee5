"""A scan of a job on this machine: its ranks if they run, else what they have left, else why nothing of it is seen."""

from dataclasses import dataclass, field

from pardbg.collectors.jobs.find import find_world
from pardbg.collectors.jobs.job_ids import read_job_name
from pardbg.collectors.jobs.query import JobQuery
from pardbg.watchdog.errors import AmbiguousJobError, InputError
from pardbg.watchdog.model.evidence import Absence
from pardbg.watchdog.scan.ended import add_ended_ranks, name_newest, scan_ended
from pardbg.watchdog.scan.local_site import LocalSite
from pardbg.watchdog.scan.scan import Progress, Scanned, Settings, scan
from pardbg.watchdog.scan.unseen import tell_unseen


@dataclass(frozen=True)
class Elsewhere:
    """What a scheduler says of other places. ``problem``: why it names none. ``unseen``: what could not be asked, by host.

    ``notes`` are for the report.
    """

    problem: str = ""
    unseen: dict[str, Absence] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def scan_here(query: JobQuery, elsewhere: Elsewhere, settings: Settings, progress: Progress) -> Scanned:
    """Scans it.

    Args:
        query: which job.
        elsewhere: if no rank is here, the job may run where nobody could look.
        settings: as always.
        progress: as always.

    Raises:
        InputError: if there is no such job, here or anywhere.
    """
    site = LocalSite(lambda: add_ended_ranks(find_world(query)))
    unasked = (f"{elsewhere.problem}; only this machine was looked at",) if elsewhere.unseen else ()
    site.remarks = (*unasked, *elsewhere.notes)
    try:
        return scan(site, settings, progress)
    except AmbiguousJobError:
        raise
    except InputError as error:
        if query.job is None and not query.pids:
            raise name_newest(error) from error
        ended = scan_ended(query, settings, progress)
        if ended is not None:
            return ended.with_notes(site.remarks)
        if elsewhere.unseen and query.job is not None:
            name = read_job_name(query.job, ())
            why = f"{elsewhere.problem}; and {error}; if you know its nodes: --via ssh --hosts"
            return tell_unseen(name.name, name.source, why, elsewhere.unseen, settings)
        if elsewhere.problem:
            remedy = "look at the id: squeue --me; why Slurm has ended a job is at the end of its output"
            raise InputError(f"{elsewhere.problem}; {error}", remedy=remedy) from error
        raise
