"""From records, steps and nodes to one `SlurmJob`. Pure."""

from collections.abc import Iterable, Sequence

from pardbg.collectors.jobs.slurm.job import JobStep, SlurmJob, SlurmPart
from pardbg.collectors.jobs.slurm.node_names import expand_nodes
from pardbg.collectors.jobs.slurm.query import SlurmQuery
from pardbg.collectors.parsing.slurm_record import SlurmNode, SlurmRecord, SlurmState, SlurmStep
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.evidence import Absence

_NO_TASKS = frozenset({"batch", "extern", "interactive"})


class Findings(Noun, frozen=True, kw_only=True):
    """What the commands have said so far. ``records``: one, or the components of a het job by offset."""

    records: tuple[SlurmRecord, ...]
    steps: tuple[SlurmStep, ...] = ()
    nodes: tuple[SlurmNode, ...] = ()
    previous_run: SlurmRecord | None = None
    told_by: tuple[str, ...] = ()
    unknowns: tuple[Absence, ...] = ()


def build_job(found: Findings, query: SlurmQuery) -> SlurmJob:
    """The job.

    Raises:
        ParseError: if a node list cannot be expanded.
    """
    first = found.records[0]
    is_whole_het = first.het_job_id is not None and query.het_offset is None and first.job_id == first.het_job_id
    lists = [() if record.state is SlurmState.PENDING else expand_nodes(record.node_list) for record in found.records]
    whole = _each_once(name for names in lists for name in names)
    steps = tuple(map(_build_step, found.steps))
    nodes = _each_once(name for step in steps if step.step == query.step for name in step.nodes) or whole
    down = [node.name for node in found.nodes if node.is_down]
    silent = {node.name for node in found.nodes if not node.is_responding}.difference(down)
    lost = _lost(found.records, steps, whole, down)
    return SlurmJob(
        spelled=str(first.het_job_id) if is_whole_het else _spell(first, query),
        job_id=first.job_id,
        array_job_id=first.array_job_id,
        array_task_id=query.array_task if first.task_number is None else first.task_number,
        het_job_id=first.het_job_id,
        het_offset=None if is_whole_het else first.het_offset,
        parts=_build_parts(found.records, lists),
        step=query.step,
        name=first.name,
        user=first.user,
        uid=first.uid,
        state=first.state,
        raw_state=first.raw_state,
        reason=first.reason,
        nodes=nodes,
        lost_nodes=lost,
        silent_nodes=tuple(name for name in whole if name in silent),
        ill_nodes=tuple(node for node in found.nodes if node.is_down or not node.is_responding),
        n_tasks=_count_tasks(found.records, steps),
        steps=steps,
        started_at=first.started_at if first.state.holds_nodes or first.state.is_over else None,
        ended_at=first.ended_at if first.state.is_over else None,
        time_is_up_at=first.ended_at if first.state.holds_nodes and first.time_limit_s is not None else None,
        time_limit_s=first.time_limit_s,
        exit_code=first.exit_code if first.state.is_over else None,
        signal=first.signal if first.state.is_over else None,
        cancelled_by=first.cancelled_by,
        restarts=first.restarts,
        previous_run=found.previous_run,
        log_path="" if first.het_offset else first.log_path,  # all components write into their leader's
        told_by=found.told_by,
        unknowns=found.unknowns,
    )


def _spell(record: SlurmRecord, query: SlurmQuery) -> str:
    return query.name if record.array_task and record.task_number is None else record.spelled


def _build_parts(records: Sequence[SlurmRecord], lists: Sequence[tuple[str, ...]]) -> tuple[SlurmPart, ...]:
    return tuple(
        SlurmPart(het_offset=record.het_offset, job_id=record.job_id, nodes=names)
        for record, names in zip(records, lists, strict=True)
        if record.het_offset is not None
    )


def _build_step(step: SlurmStep) -> JobStep:
    return JobStep(
        step=step.step, name=step.name, nodes=expand_nodes(step.node_list), n_tasks=step.n_tasks, started_at=step.started_at
    )


def _lost(records: Sequence[SlurmRecord], steps: Sequence[JobStep], whole: tuple[str, ...], down: list[str]) -> tuple[str, ...]:
    """Named by Slurm; down; or in a step and no more in the job, which is what ``--no-kill`` leaves of a failed node."""
    named = [name for record in records for name in expand_nodes(record.failed_nodes)]
    removed = [name for step in steps for name in step.nodes if name not in whole] if len(records) == 1 else []
    return _each_once([*named, *down, *removed])


def _count_tasks(records: Sequence[SlurmRecord], steps: Sequence[JobStep]) -> int | None:
    counted = [step.n_tasks for step in steps if step.n_tasks is not None and step.step not in _NO_TASKS]
    asked = [record.n_tasks for record in records if record.n_tasks is not None]
    if len(records) > 1:
        return sum(asked) if asked else None
    return max(counted, default=asked[0] if asked else None)


def _each_once(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
