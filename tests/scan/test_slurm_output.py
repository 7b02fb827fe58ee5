"""What Slurm has written into the output of a job that it ended, where accounting is off; and what that file's name is not."""

import sys
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from pardbg.collectors.ended.script_output import evidence_of, read_script_output
from pardbg.collectors.jobs.query import JobQuery
from pardbg.collectors.jobs.slurm.ending import ending_of
from pardbg.collectors.jobs.slurm.job import SlurmJob
from pardbg.collectors.parsing.slurm_notices import parse_notices
from pardbg.collectors.parsing.slurm_record import SlurmRecord, SlurmState
from pardbg.watchdog.model.evidence import Absence
from pardbg.watchdog.model.names import AbsenceReason, Cause, CollectorName, Confidence
from pardbg.watchdog.model.report import Report
from pardbg.watchdog.scan.scan import Settings
from pardbg.watchdog.scan.slurm_ended import scan_slurm_ended
from pardbg.watchdog.scan.slurm_notices import complete

NUMBER = 987_654
REQUEUED = SlurmJob(spelled=str(NUMBER), job_id=NUMBER, state=SlurmState.PENDING, restarts=1)
TRACEBACK = 'Traceback (most recent call last):\n  File "/w/train.py", line 7, in main\nValueError: late\n'


def report_of(job: SlurmJob, folder: Path, text: str) -> Report:
    output = folder / f"slurm-{NUMBER}.out"
    output.write_text(text)
    job = replace(job, log_path=str(output))
    return scan_slurm_ended(job, JobQuery(job=f"slurm:{NUMBER}"), Settings(), lambda _: None).report


def notice(why: str, job: int = NUMBER) -> str:
    return f"slurmstepd-n1: error: *** JOB {job} ON n1 CANCELLED AT 2026-11-30T02:55:47{why} ***\n"


def test_output_says_why_a_job_was_put_back(tmp_path: Path) -> None:
    verdict = report_of(REQUEUED, tmp_path, notice(" DUE TO PREEMPTION")).verdict
    assert verdict is not None
    assert (verdict.cause, verdict.confidence) == (Cause.PREEMPTED, Confidence.SUPPORTED)
    assert "was preempted" in verdict.claim
    assert str(tmp_path) in verdict.evidence[0].origin


def test_output_names_the_node_that_failed() -> None:
    text = "srun: error: Node failure on n2\n" + notice(" DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS")
    for job in (REQUEUED, replace(REQUEUED, state=SlurmState.NODE_FAIL)):
        ending = ending_of(complete(job, parse_notices(text)))
        assert ending is not None
        assert (ending.cause, ending.nodes) == (Cause.NODE_LOST, ("n2",))
    known = replace(REQUEUED, previous_run=SlurmRecord(job_id=NUMBER, state=SlurmState.NODE_FAIL), lost_nodes=("n9",))
    assert complete(known, parse_notices(text)) == known


@pytest.mark.parametrize("text", [notice(" DUE TO PREEMPTION", NUMBER + 1), notice(" DUE TO JOB REQUEUE"), "preempted\n"])
def test_lines_of_another_job_or_without_a_reason_tell_nothing(text: str) -> None:
    assert complete(REQUEUED, parse_notices(text)) == REQUEUED


def test_number_of_a_job_in_the_name_of_its_output_is_no_rank(tmp_path: Path) -> None:
    output = tmp_path / "slurm-7.out"
    for text, ranks in ((TRACEBACK, []), ("".join(f"[rank3]: {line}\n" for line in TRACEBACK.splitlines()), [3])):
        output.write_text(text)
        assert [item.rank for item in evidence_of(read_script_output(str(output)), str(output))] == ranks


def test_output_that_cannot_be_read_is_an_unknown(tmp_path: Path) -> None:
    path = str(tmp_path / "gone.out")
    (item,) = evidence_of(read_script_output(path), path)
    gone = Absence(reason=AbsenceReason.UNREADABLE, detail="the job's output: No such file or directory")
    assert (item.source, item.rank, item.observation) == (CollectorName.RANK_LOG, None, gone)


def test_output_on_a_dead_mount_holds_nobody_up() -> None:
    began_s = time.monotonic()
    stuck = [sys.executable, "-c", "import time; time.sleep(60)"]
    absence = read_script_output("/mnt/slurm-7.out", within_s=0.3, command=stuck)
    assert isinstance(absence, Absence)
    assert absence.reason is AbsenceReason.TIMED_OUT
    assert time.monotonic() - began_s < 5
