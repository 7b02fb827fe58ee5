"""A job of Slurm's, put together from what its commands say."""

from pardbg.collectors.parsing.slurm_record import SlurmNode, SlurmRecord, SlurmState
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.evidence import Absence


class SlurmPart(Noun, frozen=True, kw_only=True):
    """A component of a het job. `srun` reaches its nodes by ``--het-group=het_offset``."""

    het_offset: int
    job_id: int
    nodes: tuple[str, ...]


class JobStep(Noun, frozen=True, kw_only=True):
    """A step that runs now: ``0`` and on are those of `srun`, ``batch`` is the script."""

    step: str
    name: str
    nodes: tuple[str, ...]
    n_tasks: int | None
    started_at: str | None


class SlurmJob(Noun, frozen=True, kw_only=True):
    """One job, one task of an array, or all components of a het job together. None is "not said".

    Attributes:
        spelled: the id as people type it: ``1234``, ``1234_7``, ``1234+1``.
        job_id: of a whole het job its leader's.
        array_job_id: with ``array_task_id`` if it is a task of an array.
        het_job_id: the leader's number; ``het_offset`` is None if the whole het job is meant.
        parts: the components of a het job that are meant.
        raw_state: as Slurm spells it.
        reason: why it is pending, or why it ended: ``Resources``, ``NodeDown``.
        nodes: single names in Slurm's order. Of a job that waits in the queue: none.
        step: the step the user asked for; then ``nodes`` are that step's.
        lost_nodes: nodes that have failed under the job: Slurm names them, has taken them away, or has marked them down.
        silent_nodes: nodes of the job that do not answer the controller now, not yet marked down. Not to be asked by `srun`.
        ill_nodes: what the controller says of those.
        n_tasks: as asked for; of a running job the largest step's.
        started_at: RFC 3339.
        ended_at: RFC 3339, only of a job that has ended.
        time_is_up_at: RFC 3339, of a job that runs and has a limit.
        cancelled_by: user number, where accounting says it.
        restarts: how often it has been put back into the queue.
        previous_run: how the run before the last restart ended, where accounting knows.
        log_path: where the batch script's output goes: Slurm writes there why it ended the job (`slurm_notices.py`).
        told_by: the commands that said so.
        unknowns: commands that said nothing, and why.
    """

    spelled: str
    job_id: int
    array_job_id: int | None = None
    array_task_id: int | None = None
    het_job_id: int | None = None
    het_offset: int | None = None
    parts: tuple[SlurmPart, ...] = ()
    step: str | None = None
    name: str = ""
    user: str = ""
    uid: int | None = None
    state: SlurmState
    raw_state: str = ""
    reason: str = ""
    nodes: tuple[str, ...] = ()
    lost_nodes: tuple[str, ...] = ()
    silent_nodes: tuple[str, ...] = ()
    ill_nodes: tuple[SlurmNode, ...] = ()
    n_tasks: int | None = None
    steps: tuple[JobStep, ...] = ()
    started_at: str | None = None
    ended_at: str | None = None
    time_is_up_at: str | None = None
    time_limit_s: int | None = None
    exit_code: int | None = None
    signal: int | None = None
    cancelled_by: int | None = None
    restarts: int | None = None
    previous_run: SlurmRecord | None = None
    log_path: str = ""
    told_by: tuple[str, ...] = ()
    unknowns: tuple[Absence, ...] = ()

    @property
    def reachable_nodes(self) -> tuple[str, ...]:
        """Those that `srun` may be sent to: one that does not answer keeps it from starting anywhere for 10 to 20 s."""
        out = {*self.lost_nodes, *self.silent_nodes}
        return tuple(node for node in self.nodes if node not in out)

    @property
    def is_ending(self) -> bool:
        """Whether Slurm is ending its processes now: nothing can be started in it, and one that is stuck keeps it so."""
        return self.state is SlurmState.COMPLETING or "COMPLETING" in self.raw_state.upper()

    @property
    def srun_job_id(self) -> int:
        """What `srun --jobid` takes: it wants a het job's leader and, for its parts, ``--het-group``."""
        return self.job_id if self.het_job_id is None else self.het_job_id

    @property
    def het_groups(self) -> tuple[int, ...]:
        """For `srun --het-group`; none if it is no het job."""
        return tuple(part.het_offset for part in self.parts)
