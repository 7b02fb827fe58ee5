"""What Slurm's commands say of one job, in one form whichever of them said it. No files, no commands: nouns only."""

from enum import Enum

from pardbg.watchdog.model.base import Noun


class SlurmState(str, Enum):
    """The states of a job that matter to a diagnosis. Slurm has more; see `slurm_state.py`."""

    PENDING = "pending"
    RUNNING = "running"
    SUSPENDED = "suspended"
    COMPLETING = "completing"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMEOUT = "timeout"
    NODE_FAIL = "node-fail"
    PREEMPTED = "preempted"
    OUT_OF_MEMORY = "out-of-memory"
    BOOT_FAIL = "boot-fail"
    DEADLINE = "deadline"
    UNKNOWN = "unknown"

    @property
    def holds_nodes(self) -> bool:
        """Whether processes of the job may live now."""
        return self in _HOLDING

    @property
    def is_over(self) -> bool:
        """Whether this run of the job has ended."""
        return self not in {*_HOLDING, SlurmState.PENDING, SlurmState.UNKNOWN}


_HOLDING = frozenset({SlurmState.RUNNING, SlurmState.SUSPENDED, SlurmState.COMPLETING})


class SlurmRecord(Noun, frozen=True, kw_only=True):
    """One job, array task or component of a het job, as Slurm writes it. None or empty is "not said".

    Attributes:
        job_id: each task of an array and each component of a het job has its own.
        array_task: ``7``, or for tasks that have not started yet a set of them: ``2-9%2``.
        raw_state: as Slurm spells it, e.g. ``CANCELLED by 1000`` or ``RUNNING,COMPLETING``.
        node_list: folded, e.g. ``n[1-2]``.
        failed_nodes: folded; nodes whose failure Slurm gives as the reason of the end.
        started_at: RFC 3339, as ``ended_at``; for a job that runs, ``ended_at`` is when its time will be up.
        signal: that ended the batch script or the first task.
        cancelled_by: user number.
        restarts: how often Slurm has put the job back into the queue.
        log_path: where the batch script's output goes.
        step: ``0``, ``batch`` ... where the record is of a step (`sacct`).
    """

    job_id: int
    array_job_id: int | None = None
    array_task: str = ""
    het_job_id: int | None = None
    het_offset: int | None = None
    name: str = ""
    user: str = ""
    uid: int | None = None
    state: SlurmState
    raw_state: str = ""
    reason: str = ""
    node_list: str = ""
    failed_nodes: str = ""
    n_tasks: int | None = None
    started_at: str | None = None
    ended_at: str | None = None
    time_limit_s: int | None = None
    exit_code: int | None = None
    signal: int | None = None
    cancelled_by: int | None = None
    restarts: int | None = None
    log_path: str = ""
    step: str = ""

    @property
    def task_number(self) -> int | None:
        """Of an array task that has started."""
        return int(self.array_task) if self.array_task.isascii() and self.array_task.isdigit() else None

    @property
    def spelled(self) -> str:
        """The id as people type it: ``1234``, ``1234_7``, ``1234+1``."""
        if self.array_job_id is not None and self.array_task:
            return f"{self.array_job_id}_{self.array_task if self.task_number is not None else f'[{self.array_task}]'}"
        if self.het_job_id is not None and self.het_offset is not None:
            return f"{self.het_job_id}+{self.het_offset}"
        return str(self.job_id)


class SlurmStep(Noun, frozen=True, kw_only=True):
    """One step that runs: ``0`` and on are those of `srun`, ``batch`` the script. ``n_tasks`` as asked for."""

    step: str
    name: str = ""
    raw_state: str = ""
    node_list: str = ""
    n_tasks: int | None = None
    started_at: str | None = None


class SlurmNode(Noun, frozen=True, kw_only=True):
    """A node as the controller sees it. ``since`` (RFC 3339) and ``reason`` belong to a node that is down or drained."""

    name: str
    raw_state: str
    is_down: bool = False
    is_responding: bool = True
    reason: str = ""
    since: str | None = None
