"""The pods of a Kubernetes job: nodes, in each of which the ranks of this job are the only ones."""

from msgspec.structs import replace

from pardbg.collectors.jobs.kubernetes.job import KubernetesJob
from pardbg.collectors.jobs.query import ChosenJob, JobQuery
from pardbg.watchdog.errors import AmbiguousJobError
from pardbg.watchdog.model.names import JobSource
from pardbg.watchdog.scan.kubernetes_ended import tell_ending
from pardbg.watchdog.scan.nodes.by_hand import over_kubectl
from pardbg.watchdog.scan.nodes.nodes_site import NodesSite, Times
from pardbg.watchdog.scan.nodes.rounds import Talk


class PodsSite(NodesSite):
    """A `NodesSite` whose job is known by its pods: a process in a pod does not know which Kubernetes job it belongs to."""

    def __init__(self, conversation: Talk, query: JobQuery, job: KubernetesJob, times: Times | None = None) -> None:
        """Asks nothing yet."""
        super().__init__(conversation, replace(query, job=None), job.unreached, times, over_kubectl(job))
        self._named = query
        self._job = job

    def find(self) -> ChosenJob:
        """See `Site`; with what Kubernetes says of pods that it has ended. By name only where a pod sees several jobs."""
        try:
            chosen = super().find()
        except AmbiguousJobError:
            self._query = self._named
            chosen = super().find()
        world = replace(chosen.world, evidence=(*chosen.world.evidence, *tell_ending(self._job)))
        return ChosenJob(world=world, source=JobSource.KUBERNETES, job_id=self._job.spelled)

    @property
    def remarks(self) -> tuple[str, ...]:
        """See `Site`; with the containers that were restarted."""
        return (*super().remarks, *self._job.restarts)
