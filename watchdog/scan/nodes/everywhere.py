"""A scan of all nodes of a job: the conversation with them, and what is said where none of them answers."""

import dataclasses
import time
from contextlib import AbstractContextManager

from msgspec.structs import replace

from pardbg.collectors.jobs.job_ids import read_job_name
from pardbg.collectors.jobs.query import JobQuery
from pardbg.watchdog.model.names import AbsenceReason
from pardbg.watchdog.scan.nodes.by_hand import reach_of
from pardbg.watchdog.scan.nodes.nodes_site import NobodyAnsweredError, NodesSite, NoRankError, Times
from pardbg.watchdog.scan.nodes.pods_site import PodsSite
from pardbg.watchdog.scan.nodes.reaching import Route
from pardbg.watchdog.scan.nodes.refused import ended_meanwhile, remedy_of, words_of
from pardbg.watchdog.scan.nodes.rounds import Talk
from pardbg.watchdog.scan.nodes.slurm_steps import explain, name_on_nodes, tell_component
from pardbg.watchdog.scan.scan import Progress, Scanned, Settings, scan
from pardbg.watchdog.scan.slurm_ended import scan_slurm_ended
from pardbg.watchdog.scan.unseen import tell_unseen
from pardbg.watchdog.transport.conversation import Conversation
from pardbg.watchdog.transport.way import Way

_FOR_THE_USER = frozenset(
    {
        AbsenceReason.DENIED,
        AbsenceReason.NOT_INSTALLED,
        AbsenceReason.UNSUPPORTED,
        AbsenceReason.GONE,
        AbsenceReason.SWITCHED_OFF,
    }
)
"""Reasons that do not pass: something must be done, or said otherwise."""


def scan_nodes(query: JobQuery, route: Route, settings: Settings, progress: Progress) -> Scanned:
    """Scans it.

    Raises:
        InputError: if there is no such job there, or no node can be looked at before the user does something.
    """
    settings = settings if settings.began_s is not None else dataclasses.replace(settings, began_s=time.monotonic())
    times = Times(until_s=(settings.began_s or 0.0) + settings.timeout_s)
    name = name_on_nodes(route.slurm_job) if route.slurm_job is not None else None
    asked = replace(query, job=name or query.job)
    try:
        with _speak(route) as conversation:
            if route.kubernetes_job is not None:
                return scan(PodsSite(conversation, asked, route.kubernetes_job, times), settings, progress)
            site = NodesSite(conversation, asked, route.unreached, times, reach_of(route))
            return scan(site, settings, progress).with_notes(tell_component(route.slurm_job))
    except NobodyAnsweredError as error:
        job = ended_meanwhile(route, query.job, error.absences.values())
        if job is not None:
            return scan_slurm_ended(job, query, settings, progress)
        error.remedy = remedy_of(route, error.absences.values()) or error.remedy
        if query.job is None or _FOR_THE_USER.issuperset(absence.reason for absence in error.absences.values()):
            raise
        called = read_job_name(query.job, ())
        why = words_of(route, str(error), error.absences.values())
        told = tell_unseen(called.name, called.source, why, error.absences, settings)
        return dataclasses.replace(told, is_interrupted=error.is_interrupted)
    except NoRankError as error:
        raise explain(error, route.slurm_job) from error


def _speak(route: Route) -> "AbstractContextManager[Talk]":
    if route.agents is not None:
        from pardbg.watchdog.transport.agents import Agents  # noqa: PLC0415 - aiohttp takes 0.3 s

        return Agents(route.agents.addresses, route.agents.access)
    return Conversation(route.way if route.way is not None else Way(name="nobody", launches=()))
