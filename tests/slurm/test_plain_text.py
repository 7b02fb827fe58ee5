"""The plain answers of `squeue`, `sacct` and `sinfo`, and the lines Slurm leaves in a job's output."""

import pytest

from pardbg.collectors.parsing.slurm_nodes import parse_nodes
from pardbg.collectors.parsing.slurm_notices import NoticeKind, parse_notices
from pardbg.collectors.parsing.slurm_record import SlurmState
from pardbg.collectors.parsing.slurm_sacct import parse_sacct
from pardbg.collectors.parsing.slurm_squeue import parse_squeue
from pardbg.collectors.parsing.slurm_state import read_state
from pardbg.collectors.parsing.slurm_values import read_duration, read_number, read_time
from pardbg.watchdog.errors import ParseError


def accounted(
    job: str, state: str, *, nodes: str = "n[1-2]", code: str = "0:0", name: str = "train", start: str = "1796007305"
) -> str:
    raw = job.partition("_")[0]
    parts = [job, raw, "ada", "1000", state, code, start, "1796007905", "60", "", nodes, "None", name]
    return "\x1f".join(parts) + "\n"


def test_squeue_of_a_plain_job_an_array_and_a_het_job() -> None:
    plain, waiting, task, component = parse_squeue(
        "5|5|N/A|5|RUNNING|ada|1000|n[1-2]|1796007305|1796007905|10:00|None|a | b\n"
        "1|1|2-9%2|1_[2-9%2]|PENDING|ada|1000||N/A|N/A|UNLIMITED|JobArrayTaskLimit|arr ay=x\n"
        "8|1|1|1_1|RUNNING|ada|1000|n1|1796007305|NONE|365-00:00:00|None|arr ay=x\n"
        "3|3|N/A|2+1|RUNNING|ada|1000|n2|1796007305|NONE|UNLIMITED|None|het\n"
    )
    assert (plain.name, plain.node_list, plain.time_limit_s, plain.array_job_id) == ("a | b", "n[1-2]", 600, None)
    assert (waiting.spelled, waiting.started_at, waiting.reason, waiting.time_limit_s) == (
        "1_[2-9%2]",
        None,
        "JobArrayTaskLimit",
        None,
    )
    assert (task.job_id, task.spelled, task.time_limit_s) == (8, "1_1", 365 * 86400)
    assert (component.job_id, component.het_job_id, component.het_offset) == (3, 2, 1)


def test_squeue_with_fewer_fields_is_refused() -> None:
    with pytest.raises(ParseError):
        parse_squeue("5|RUNNING\n")
    assert parse_squeue("") == ()


def test_sacct_says_who_cancelled_and_keeps_steps_apart() -> None:
    job, step = parse_sacct(accounted("5", "CANCELLED by 1001", code="0:15") + accounted("5.0", "CANCELLED", code="0:9"))
    assert (job.state, job.cancelled_by, job.signal, job.step, job.time_limit_s) == (SlurmState.CANCELLED, 1001, 15, "", 3600)
    assert (step.job_id, step.step, step.signal) == (5, "0", 9)


def test_sacct_ids_of_arrays_het_jobs_and_their_steps() -> None:
    text = "".join(accounted(job, "COMPLETED") for job in ("1_7", "1_7.batch", "1_[8-9%2]", "2+1", "2+1.0", "3.0+1"))
    spelled = [(record.spelled, record.step) for record in parse_sacct(text)]
    assert spelled == [("1_7", ""), ("1_7", "batch"), ("1_[8-9%2]", ""), ("2+1", ""), ("2+1", "0"), ("3", "0+1")]


def test_sacct_of_a_job_that_never_started_and_of_a_strange_name() -> None:
    (job,) = parse_sacct(accounted("5", "CANCELLED by 0", nodes="None assigned", start="None", name="a\x1fb|c"))
    assert (job.node_list, job.started_at, job.cancelled_by, job.name) == ("", None, 0, "a\x1fb|c")
    with pytest.raises(ParseError):
        parse_sacct("5|COMPLETED\n")


def test_nodes_that_are_down_and_nodes_that_do_not_answer() -> None:
    well, silent, down, drained = parse_nodes(
        "n1|mixed|Unknown|none\nn1|mixed|Unknown|none\nn2|mixed*|Unknown|none\n"
        "n3|down*|1796007451|Not responding\nn4|draining|1796007451|bad | DIMM\n"
    )
    assert (well.is_down, well.is_responding, well.reason, well.since) == (False, True, "", None)
    assert (silent.is_down, silent.is_responding) == (False, False)
    assert (down.is_down, down.reason, down.since) == (True, "Not responding", "2026-11-30T02:57:31Z")
    assert (drained.is_down, drained.is_responding, drained.reason) == (False, True, "bad | DIMM")


@pytest.mark.parametrize("text", ["n1|idle\n", "|idle|x|y\n", "sinfo: error\n"])
def test_anything_else_is_no_node(text: str) -> None:
    with pytest.raises(ParseError):
        parse_nodes(text)


def test_the_end_of_a_job_is_in_its_output() -> None:
    text = (
        "step 12 loss 0.3\n"
        "slurmstepd-n1: error: *** STEP 13.0 ON n1 CANCELLED AT 2026-11-30T02:55:47 DUE TO PREEMPTION ***\n"
        "slurmstepd: error: *** JOB 13 ON n1 CANCELLED AT 2026-11-30T02:55:47 DUE TO TIME LIMIT ***\n"
        "srun: error: Node failure on n2\n"
        "slurmstepd-n1: error: *** JOB 16 ON n1 CANCELLED AT 2026-11-30T02:57:31 DUE TO NODE FAILURE, SEE SLURMCTLD LOG ***\n"
        "slurmstepd: error: *** JOB 11 ON n1 CANCELLED AT 2026-11-30T02:55:27 ***\n"
        "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=5.0. Some of your processes may have been killed\n"
        "my own line says CANCELLED AT noon\n"
    )
    found = [(notice.kind, notice.job_id, notice.node, notice.is_whole_job) for notice in parse_notices(text)]
    assert found == [
        (NoticeKind.PREEMPTED, 13, "n1", False),
        (NoticeKind.TIME_LIMIT, 13, "n1", True),
        (NoticeKind.NODE_FAILURE, None, "n2", False),
        (NoticeKind.NODE_FAILURE, 16, "n1", True),
        (NoticeKind.CANCELLED, 11, "n1", True),
        (NoticeKind.OUT_OF_MEMORY, None, "", False),
    ]


@pytest.mark.parametrize(
    ("words", "state"),
    [
        ("RUNNING", SlurmState.RUNNING),
        ("COMPLETED+", SlurmState.COMPLETED),
        ("CANCELLED by 1000", SlurmState.CANCELLED),
        ("CANCELLED+", SlurmState.CANCELLED),
        ("OUT_OF_MEMORY", SlurmState.OUT_OF_MEMORY),
        ("NODE_FAIL", SlurmState.NODE_FAIL),
        ("REQUEUED", SlurmState.PENDING),
        ("CONFIGURING", SlurmState.PENDING),
        ("TOMORROWS_STATE", SlurmState.UNKNOWN),
    ],
)
def test_states(words: str, state: SlurmState) -> None:
    assert read_state(words) is state


def test_durations_times_and_numbers() -> None:
    texts = ["10:00", "01:00:00", "2-00:00:00", "1-02", "1-02:30", "30", "UNLIMITED", "Partition_Limit", ""]
    assert [read_duration(text) for text in texts] == [600, 3600, 172800, 93600, 95400, 30, None, None, None]
    assert [read_time(text) for text in ("1796007305", "0", "Unknown", "2026-11-30T02:55:05", "9" * 18)] == [
        "2026-11-30T02:55:05Z",
        None,
        None,
        None,
        None,
    ]
    assert [read_number(value) for value in ("7", "N/A", "", 4294967294, 4294967295, None)] == [7, None, None, None, None, None]
