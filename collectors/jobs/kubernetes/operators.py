"""Which pods belong to a job: one line for each kind of job, in the order in which they are asked for.

``label`` is what the kind's controller puts on every pod, with the job's name as its value. ``group`` is the API group that the
cluster serves if that kind is installed; kinds that are not are never asked for. ``through`` names objects that stand between
the job and its pods: their names are looked up first, by their own label. To add a kind, add its line.

A RayJob comes first, since the Job that only submits it has the same name. ``job-name`` serves batch/v1 Jobs of every version
(they carry it beside ``batch.kubernetes.io/job-name``) and the pods of Kubeflow's operators before ``training.kubeflow.org``.
Kubeflow's v2 TrainJob is a JobSet of its own name. A StatefulSet puts its name on no label of its pods, and
``app.kubernetes.io/instance`` is a whole application: neither is here.
"""

from pardbg.watchdog.model.base import Noun


class Through(Noun, frozen=True, kw_only=True):
    """Objects between a job and its pods: their kind, as kubectl takes it, and the label with the job's name."""

    kind: str
    label: str


class JobKind(Noun, frozen=True, kw_only=True):
    """A kind of job. ``group`` empty: every cluster has it."""

    spelled: str
    label: str
    group: str = ""
    through: Through | None = None


_RAY_CLUSTERS = Through(kind="rayclusters.ray.io", label="ray.io/originated-from-cr-name")

JOB_KINDS: tuple[JobKind, ...] = (
    JobKind(spelled="RayJob", label="ray.io/cluster", group="ray.io", through=_RAY_CLUSTERS),
    JobKind(spelled="Job", label="job-name"),
    JobKind(spelled="Kubeflow job", label="training.kubeflow.org/job-name", group="kubeflow.org"),
    JobKind(spelled="JobSet", label="jobset.sigs.k8s.io/jobset-name", group="jobset.x-k8s.io"),
    JobKind(spelled="Volcano job", label="volcano.sh/job-name", group="batch.volcano.sh"),
    JobKind(spelled="RayCluster", label="ray.io/cluster", group="ray.io"),
    JobKind(spelled="LeaderWorkerSet", label="leaderworkerset.sigs.k8s.io/name", group="leaderworkerset.x-k8s.io"),
    JobKind(spelled="AppWrapper", label="workload.codeflare.dev/appwrapper", group="workload.codeflare.dev"),
    JobKind(spelled="pod group of Kueue", label="kueue.x-k8s.io/pod-group-name", group="kueue.x-k8s.io"),
    JobKind(spelled="old PyTorchJob", label="pytorch-job-name", group="kubeflow.org"),
    JobKind(spelled="old MPIJob", label="mpi-job-name", group="kubeflow.org"),
)

PLACE_LABELS = (
    "batch.kubernetes.io/job-completion-index",
    "training.kubeflow.org/replica-type",
    "training.kubeflow.org/replica-index",
    "jobset.sigs.k8s.io/job-global-index",
    "volcano.sh/task-spec",
    "volcano.sh/task-index",
    "leaderworkerset.sigs.k8s.io/group-index",
    "leaderworkerset.sigs.k8s.io/worker-index",
)
"""Labels that say which place in its job a pod takes: a pod that has ended and its replacement agree in all of them."""
