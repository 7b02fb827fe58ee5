"""Dumps taken at different moments accuse nobody: what one member has completed, all have entered."""

from collections.abc import Mapping
from datetime import datetime, timezone

import pytest
from msgspec.structs import replace

from pardbg.watchdog.judge.judge import Circumstances, judge
from pardbg.watchdog.model.evidence import Evidence, JobDescription, RankDescription, StackFrame
from pardbg.watchdog.model.log_event import CollectiveTimeout, LogSeen
from pardbg.watchdog.model.names import CollectorName, Confidence, Kind, Status
from pardbg.watchdog.model.report import Report
from pardbg.watchdog.store.view import EvidenceView
from tests.collectors.dumps import Entry, gloo, make_entry, outstanding
from tests.diagnosis.diagnosing import WHEN
from tests.diagnosis.live_evidence import Seen, frame
from tests.diagnosis.test_hand_made import blamed, evidence_from, report_of

CREATED_S = 1_700_000_000  # of the first operation; one follows each millisecond


def ring(done: int, *, waits: int = 0, changes: Mapping[str, object] | None = None) -> list[Entry]:
    """Collectives 1 to ``done`` of the world, and ``waits`` more that are outstanding."""
    finished = [make_entry(number, **(changes or {})) for number in range(done)]
    return [*finished, *(outstanding(done + number, **(changes or {})) for number in range(waits))]


def told(report: Report) -> tuple[Status, Kind | None, set[int | None]]:
    return report.status, report.findings[0].kind if report.findings else None, blamed(report)


def test_an_old_dump_of_one_who_waits_too_leaves_only_the_other_missing() -> None:
    report = report_of({0: ring(12, waits=1), 1: ring(12, waits=1), 2: ring(12), 3: ring(5)})

    assert told(report) == (Status.HUNG, Kind.MISSING_PARTICIPANT, {2})
    assert [item.rank for item in report.unknowns if "older than what those of others tell" in item.detail] == [3]


def test_a_dump_that_ends_where_those_of_all_others_do_is_no_old_picture() -> None:
    report = report_of({0: ring(12, waits=1), 1: ring(12, waits=1), 2: ring(12, waits=1), 3: ring(12)})

    assert told(report) == (Status.HUNG, Kind.MISSING_PARTICIPANT, {3})


def test_dumps_of_a_healthy_job_taken_one_after_the_other_are_undetermined() -> None:
    report = report_of({0: ring(5, waits=2), 1: ring(9), 2: ring(12, waits=1), 3: ring(15, waits=1)})

    assert told(report) == (Status.UNDETERMINED, Kind.INSUFFICIENT_EVIDENCE, set())
    assert "the job moved in between" in report.notes[0]


def test_an_old_dump_among_ranks_that_wait_for_nobody_makes_no_job_healthy() -> None:
    report = report_of({0: ring(12), 1: ring(12), 2: ring(12), 3: ring(5)})

    assert told(report) == (Status.UNDETERMINED, None, set())


@pytest.mark.parametrize(
    "changes",
    [
        {"profiling_name": "nccl:broadcast"},  # its root is done alone
        {"profiling_name": "nccl:all_to_all"},  # it sends nothing to who gets nothing
        {"input_sizes": [[0]], "output_sizes": [[0]]},  # nothing to send at all
    ],
)
def test_what_a_member_can_finish_alone_proves_nothing_of_the_others(changes: Mapping[str, object]) -> None:
    report = report_of({rank: ring(12 if rank == 3 else 13, changes=changes) for rank in range(4)})

    assert report.unknowns == ()


def test_gloo_retires_what_failed_too_and_proves_nothing() -> None:
    failed = [gloo(0, is_retired=True), gloo(1, is_retired=True), gloo(2, is_retired=False)]
    report = report_of({0: failed, 1: failed, 2: failed, 3: [gloo(0, is_retired=True)]})

    assert blamed(report) == {3}


def test_device_that_is_stuck_is_named_though_a_peer_was_not_seen() -> None:
    report = report_of({0: ring(12, waits=2), 1: ring(13, waits=1), 2: ring(13, waits=1)})

    assert told(report) == (Status.HUNG, Kind.DEVICE_STUCK, {0})
    assert "ranks 1-2 have completed" in report.findings[0].claim


def test_device_that_is_stuck_is_not_told_to_hold_up_0_ranks() -> None:
    report = report_of({0: ring(12, waits=1), 1: ring(13), 2: ring(13), 3: ring(13)})

    assert told(report) == (Status.HUNG, Kind.DEVICE_STUCK, {0})
    assert "; no rank waits for it, since" in report.findings[0].claim


def dumped(rings: Mapping[int, list[Entry]], after_s: float, *more: Evidence) -> Report:
    """Diagnoses dumps whose files were written so long after the first operation."""
    moment = datetime.fromtimestamp(CREATED_S + after_s, tz=timezone.utc).isoformat().replace("+00:00", "Z")
    seen = [replace(item, observed_at=moment) for item in evidence_from(rings)]
    return judge(EvidenceView.of([*seen, *more]), Circumstances(decided_at=WHEN))


ONE_MISSING = {0: ring(12, waits=1), 1: ring(12, waits=1), 2: ring(12, waits=1), 3: ring(12)}


def test_wait_that_had_just_begun_when_it_was_dumped_is_undetermined() -> None:
    report = dumped(ONE_MISSING, 0.0)

    assert told(report) == (Status.UNDETERMINED, None, set())
    assert report.notes[0].startswith(
        "still for 1.0 s; ask again in "
    )  # times of files are cut off to seconds: at most that old


@pytest.mark.parametrize("after_s", [2.0, 86_400.0, -3_600.0])
def test_dumps_that_are_older_copied_or_of_another_clock_count_as_hung(after_s: float) -> None:
    assert told(dumped(ONE_MISSING, after_s)) == (Status.HUNG, Kind.MISSING_PARTICIPANT, {3})


def test_watchdog_that_gave_up_waiting_has_decided() -> None:
    timeout = CollectiveTimeout(text="Watchdog caught collective operation timeout", op="ALLREDUCE")
    log = Evidence(source=CollectorName.RANK_LOG, rank=0, observation=LogSeen(events=(timeout,)), origin="rank_0.log")

    assert told(dumped(ONE_MISSING, 0.0, log))[2] == {3}


def job_of(codes: Mapping[int, int]) -> Evidence:
    """job.json: the ranks with an exit code have ended, the others live."""
    ranks = tuple(
        RankDescription(rank=rank, state="gone" if rank in codes else "S", exit_code=codes.get(rank)) for rank in range(4)
    )
    seen = JobDescription(job="exp", world_size=4, ranks=ranks)
    return Evidence(source=CollectorName.HOST, rank=None, observation=seen, origin="job.json")


def test_rank_that_left_with_code_0_while_others_wait_for_it_is_dead() -> None:
    report = dumped(ONE_MISSING, 60.0, job_of({3: 0}))

    assert told(report) == (Status.HUNG, Kind.DEAD_RANK, {3})


def standing_still(rank: int, *frames: StackFrame, moved: StackFrame | None = None) -> list[Evidence]:
    """Two stacks of a rank, the second one elsewhere if it moved."""
    looks = (Seen(frames), Seen(frames if moved is None else (moved, *frames[1:])))
    return [
        Evidence(source=CollectorName.STACKS, rank=rank, observation=seen.stack(sample), origin=f"stack_{rank}_s{sample}.json")
        for sample, seen in enumerate(looks)
    ]


FINISH = (frame("finish", 2180, "/opt/venv/lib/python3.11/site-packages/wandb/sdk/wandb_run.py"), frame("main", 338))


def test_ranks_that_ended_with_code_0_after_training_are_not_dead_and_who_is_left_does_not_leave() -> None:
    done = dict.fromkeys(range(4), ring(12))
    report = dumped(done, 60.0, job_of({0: 0, 1: 0, 3: 0}), *standing_still(2, *FINISH))

    assert told(report) == (Status.HUNG, Kind.TEARDOWN_STUCK, {2})
    assert "ranks 0-1,3 ended with exit code 0" in " ".join(line.text for line in report.findings[0].evidence)


def test_who_is_left_and_moves_accuses_nobody() -> None:
    done = dict.fromkeys(range(4), ring(12))
    moving = standing_still(2, *FINISH, moved=frame("upload", 77, "/opt/venv/lib/python3.11/site-packages/wandb/sdk/sender.py"))
    report = dumped(done, 60.0, job_of({0: 0, 1: 0, 3: 0}), *moving)

    assert blamed(report) == set()


def test_of_ranks_that_ended_badly_one_with_code_0_is_still_asked_after() -> None:
    report = dumped(dict.fromkeys(range(4), ring(12)), 60.0, job_of({0: 1, 3: 0}), *standing_still(2, *FINISH))

    assert told(report)[1] is not Kind.TEARDOWN_STUCK


def test_hang_of_which_recorders_were_seen_once_is_no_more_than_supported() -> None:
    stuck = standing_still(3, frame("load_batch", 12), frame("train", 40), frame("main", 100))
    report = dumped(ONE_MISSING, 60.0, *stuck)

    assert told(report)[2] == {3}
    assert report.findings[0].confidence is Confidence.SUPPORTED


def test_rank_that_has_issued_as_much_as_the_others_and_finished_less_has_a_device_that_is_stuck() -> None:
    report = report_of({0: ring(12, waits=3), 1: ring(15, waits=1), 2: ring(15, waits=1), 3: ring(15, waits=1)})

    assert told(report) == (Status.HUNG, Kind.DEVICE_STUCK, {0})
