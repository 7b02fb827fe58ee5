"""From records to one job: arrays, het jobs, steps, nodes that are lost, runs before a restart."""

import msgspec
import pytest

from pardbg.collectors.jobs.slurm.building import Findings, build_job
from pardbg.collectors.jobs.slurm.choosing import choose_records
from pardbg.collectors.jobs.slurm.history import last_ended_run, last_runs, with_canceller
from pardbg.collectors.jobs.slurm.job import SlurmJob
from pardbg.collectors.jobs.slurm.query import SlurmQuery, read_query
from pardbg.collectors.parsing.slurm_record import SlurmNode, SlurmRecord, SlurmState, SlurmStep
from pardbg.watchdog.errors import AmbiguousJobError

RUNNING = SlurmRecord(job_id=5, state=SlurmState.RUNNING, raw_state="RUNNING", node_list="n[1-2]", n_tasks=2)
TASKS = tuple(
    SlurmRecord(job_id=10 + task, array_job_id=1, array_task=str(task), state=SlurmState.RUNNING, node_list="n1")
    for task in (3, 4)
)
WAITING = SlurmRecord(job_id=1, array_job_id=1, array_task="5-9%2", state=SlurmState.PENDING)
HET = tuple(
    SlurmRecord(job_id=2 + at, het_job_id=2, het_offset=at, state=SlurmState.RUNNING, node_list=f"n{at + 1}", n_tasks=4)
    for at in (0, 1)
)


def query(text: str) -> SlurmQuery:
    read = read_query(text)
    assert read is not None
    return read


def change(record: SlurmRecord, **values: object) -> SlurmRecord:
    return msgspec.structs.replace(record, **values)


def built(text: str, *records: SlurmRecord, steps: tuple[SlurmStep, ...] = (), nodes: tuple[SlurmNode, ...] = ()) -> SlurmJob:
    chosen = choose_records(records, query(text))
    return build_job(Findings(records=chosen, steps=steps, nodes=nodes), query(text))


@pytest.mark.parametrize("text", ["", "a", "1_", "1_x", "1+", "-1", "1 2", "--all", "1;rm", "\u0661", "1234_7.0.0", "1" * 30])
def test_what_is_no_id_never_reaches_a_command(text: str) -> None:
    assert read_query(text) is None


def test_ids_with_task_component_and_step() -> None:
    assert query("1234_7.batch") == SlurmQuery(job_id=1234, array_task=7, step="batch")
    assert (query("1234+1.0").name, query("1234_7").name, query("1234.0").name) == ("1234+1", "1234_7", "1234")


def test_one_task_that_runs_is_meant_by_the_number_of_its_array() -> None:
    assert choose_records((WAITING, TASKS[0]), query("1")) == (TASKS[0],)


def test_several_tasks_that_run_are_a_question_to_the_user() -> None:
    with pytest.raises(AmbiguousJobError) as caught:
        choose_records((WAITING, *TASKS), query("1"))
    assert caught.value.choices == ("pardbg scan --job slurm:1_3", "pardbg scan --job slurm:1_4")


def test_a_task_is_found_by_its_place_and_by_its_own_number() -> None:
    assert choose_records((WAITING, *TASKS), query("1_4")) == (TASKS[1],)
    assert choose_records((TASKS[0],), query("13")) == (TASKS[0],)
    assert choose_records(TASKS, query("1_5")) == ()


def test_a_task_that_waits_is_named_as_the_user_named_it() -> None:
    job = built("1_8", WAITING)
    assert (job.spelled, job.array_task_id, job.nodes) == ("1_8", 8, ())


def test_a_het_job_is_one_job_with_all_its_nodes() -> None:
    job = built("2", HET[1], HET[0])
    assert (job.spelled, job.nodes, job.n_tasks, job.het_groups, job.srun_job_id) == ("2", ("n1", "n2"), 8, (0, 1), 2)


def test_a_component_of_a_het_job_is_reached_through_its_leader() -> None:
    job = built("2+1", *HET)
    assert (job.spelled, job.nodes, job.job_id, job.srun_job_id, job.het_groups) == ("2+1", ("n2",), 3, 2, (1,))


def test_a_step_narrows_the_nodes_and_the_largest_step_counts_the_tasks() -> None:
    steps = (
        SlurmStep(step="batch", node_list="n1", n_tasks=99),
        SlurmStep(step="0", node_list="n2", n_tasks=8),
        SlurmStep(step="1", node_list="n[1-2]", n_tasks=16),
    )
    assert (built("5.0", RUNNING, steps=steps).nodes, built("5", RUNNING, steps=steps).nodes) == (("n2",), ("n1", "n2"))
    assert built("5", RUNNING, steps=steps).n_tasks == 16


def test_nodes_that_are_down_or_silent_are_not_to_be_asked() -> None:
    nodes = (
        SlurmNode(name="n1", raw_state="mixed*", is_responding=False),
        SlurmNode(name="n2", raw_state="down*", is_down=True, is_responding=False),
        SlurmNode(name="n3", raw_state="mixed"),
    )
    job = built("5", change(RUNNING, node_list="n[1-3]"), nodes=nodes)
    assert (job.silent_nodes, job.lost_nodes, job.reachable_nodes) == (("n1",), ("n2",), ("n3",))
    assert [node.name for node in job.ill_nodes] == ["n1", "n2"]


def test_a_node_taken_from_a_job_that_goes_on_is_lost() -> None:
    job = built("5", change(RUNNING, node_list="n1"), steps=(SlurmStep(step="0", node_list="n[1-2]", n_tasks=2),))
    assert (job.nodes, job.lost_nodes, job.reachable_nodes) == (("n1",), ("n2",), ("n1",))


def test_times_mean_what_the_state_says() -> None:
    record = change(RUNNING, started_at="A", ended_at="B", time_limit_s=60, exit_code=0)
    running, waiting = built("5", record), built("5", change(record, state=SlurmState.PENDING))
    over = built("5", change(record, state=SlurmState.TIMEOUT))
    assert (running.started_at, running.ended_at, running.time_is_up_at, running.exit_code) == ("A", None, "B", None)
    assert (waiting.started_at, waiting.ended_at, waiting.time_is_up_at) == (None, None, None)
    assert (over.started_at, over.ended_at, over.time_is_up_at, over.exit_code) == ("A", "B", None, 0)


def test_of_several_runs_the_newest_counts_and_the_one_before_is_kept() -> None:
    lost = change(RUNNING, state=SlurmState.NODE_FAIL, raw_state="NODE_FAIL", started_at="A")
    now = change(RUNNING, state=SlurmState.PENDING, raw_state="PENDING", node_list="")
    step = change(lost, step="0")
    assert last_ended_run(now, (lost, step, now)) == lost
    assert last_ended_run(now, (change(lost, raw_state="REQUEUED", state=SlurmState.PENDING), now)) is not None
    assert last_ended_run(now, (now,)) is None
    assert last_runs((lost, step, now)) == (change(now, restarts=1),)


def test_a_job_that_waits_again_has_no_nodes_though_slurm_still_cleans_up_the_old_ones() -> None:
    assert built("5", change(RUNNING, state=SlurmState.PENDING, restarts=1)).nodes == ()


def test_accounting_adds_who_cancelled() -> None:
    cancelled = change(RUNNING, state=SlurmState.CANCELLED, raw_state="CANCELLED")
    assert with_canceller(cancelled, (change(cancelled, cancelled_by=1001),)).cancelled_by == 1001
    assert with_canceller(cancelled, ()).cancelled_by is None
