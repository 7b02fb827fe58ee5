"""A Kubernetes job of which no pod runs: what its API says of their ends, and what ranks have left on this machine."""

import time

from pardbg.collectors.jobs.kubernetes.ending import ending_of
from pardbg.collectors.jobs.kubernetes.job import KubernetesJob
from pardbg.collectors.jobs.query import JobQuery
from pardbg.watchdog.errors import InputError
from pardbg.watchdog.model.evidence import Evidence, SchedulerEnding
from pardbg.watchdog.model.names import CollectorName, JobSource
from pardbg.watchdog.scan.scan import Progress, Scanned, Settings
from pardbg.watchdog.scan.scheduler_ended import Told, scan_what_is_left


def scan_kubernetes_ended(job: KubernetesJob, query: JobQuery, settings: Settings, progress: Progress) -> Scanned:
    """Diagnoses it from that.

    Raises:
        InputError: if no pod of it has started yet.
    """
    began_s = time.monotonic()
    if not job.ended:
        first = job.waiting[0]
        problem = (
            f"none of the {len(job.fates)} pods of Kubernetes job {job.spelled} has started; {first.pod.name}: {first.why}"
        )
        raise InputError(problem, remedy="scan it when it runs; kubectl describe pod says more")
    told = Told(job.spelled, JobSource.KUBERNETES, _origin(job), (*_unseen(job), *tell_ending(job)), (), began_s)
    return scan_what_is_left(told, query, settings, progress)


def tell_ending(job: KubernetesJob) -> tuple[Evidence, ...]:
    """Why pods of the job have ended. While others run, only what no rank did: the one that fails first is often a victim."""
    ending = ending_of(job)
    if ending is None or (job.running and not ending.is_from_outside):
        return ()
    observation = SchedulerEnding(
        claim=ending.claim,
        cause=ending.cause,
        at=ending.at,
        hosts=ending.pods,
        advice=ending.advice,
        is_from_outside=ending.is_from_outside,
    )
    return (
        Evidence(source=CollectorName.HOST, rank=None, observed_at=ending.at, observation=observation, origin=_origin(job)),
    )


def _unseen(job: KubernetesJob) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(source=CollectorName.HOST, rank=None, host=pod, observation=absence, origin=_origin(job))
        for pod, absence in job.unreached.items()
    )


def _origin(job: KubernetesJob) -> str:
    return ", ".join(job.told_by) or "the Kubernetes API"
