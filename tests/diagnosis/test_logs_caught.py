"""A traceback that ended a thread or a task only, or that the program logged, accuses its rank only where that also ended."""

import pytest

from pardbg.collectors.parsing.rank_log import parse_rank_log
from pardbg.watchdog.model.names import Cause, Kind
from tests.diagnosis.log_files import TRACEBACK, candidates, report_of, told, torchrun_report

BODY = 'Traceback (most recent call last):\n  File "/app/push.py", line 9, in push\n    x\nKeyError: 7\n'
LEFT = BODY.replace("in push", "in <module>")
RECORD = "2026-11-29 14:23:00,000 ERROR push.py:9 push failed\n"
SURVIVED = RECORD.replace("failed", "failed (non-fatal)")
THREAD = "Exception in thread Thread-9 (push):\n"
TASK = "Task exception was never retrieved\nfuture: <Task finished name='T' coro=<push()> exception=KeyError(7)>\n"
LOST = TRACEBACK.format(exception="RuntimeError: Connection closed by peer [10.0.0.1]:4444")


@pytest.mark.parametrize(
    ("text", "is_caught"),
    [
        (THREAD + BODY, True),
        (THREAD + LEFT, True),
        (TASK + BODY, True),
        (RECORD + BODY, True),
        ("ERROR:root:push failed\n" + BODY, True),
        ("2026-11-29 14:23:00,000 - push - WARNING - push failed\n" + BODY, True),
        (RECORD + BODY + "\nDuring handling of the above exception, another exception occurred:\n\n" + BODY, True),
        (SURVIVED + LEFT, True),
        (RECORD + LEFT, False),  # nobody caught it below the program itself
        (RECORD.replace("push failed", "fatal, exiting") + BODY, False),
        ("2026-11-29 14:23:00,000 INFO push.py:9 no ERRORS so far\n" + BODY, False),
        ("Error executing job with overrides: []\n" + BODY, False),
        ("Process SpawnProcess-1:\n" + BODY, False),
        (RECORD + BODY + LEFT, False),  # raised again, which ended it
        (THREAD + BODY + LEFT.replace("KeyError", "ValueError"), False),
    ],
)
def test_its_heading_tells_whether_a_traceback_need_not_have_ended_the_process(text: str, *, is_caught: bool) -> None:
    (found,) = parse_rank_log(text)
    assert found.traceback.is_caught == is_caught


@pytest.mark.parametrize("heading", [THREAD, TASK, RECORD, SURVIVED])
def test_the_killed_rank_outdoes_a_caught_exception_whoever_was_noticed_first(heading: str) -> None:
    logs = {"rank0.log": LOST, "rank1.log": heading + BODY, "rank2.log": "step 9\n"}
    for root in (0, 2):
        launched = {"launcher.log": torchrun_report({0: 1, 1: -15, 2: -9}, root=root)}
        assert told(report_of(logs | launched)) == (Kind.DEAD_RANK, Cause.SIGNAL, {2})


def test_beside_a_rank_that_failed_by_itself_the_launcher_may_have_sent_the_kill() -> None:
    launched = {"launcher.log": torchrun_report({0: 1, 1: 1, 2: -9}, root=1)}
    logs = {"rank0.log": LOST, "rank1.log": LEFT, "rank2.log": "step 9\n"}
    assert told(report_of(logs | launched)) == (Kind.DEAD_RANK, Cause.EXCEPTION, {1})
    unknown = report_of({"rank0.log": LOST, "rank1.log": "step 9\n", "rank2.log": "step 9\n"} | launched)
    assert told(unknown)[2] == set()


def test_a_caught_exception_makes_a_candidate_of_its_rank_and_of_who_was_not_read() -> None:
    lost = {f"rank{rank}.log": LOST for rank in (0, 1, 3)}
    report = report_of(lost | {"rank4.log": THREAD + BODY})
    assert (told(report)[2], candidates(report)) == (set(), {2, 4})
    assert told(report_of(lost | {"rank4.log": BODY}))[2] == {4}


def test_what_was_logged_is_what_ended_a_rank_that_left_with_a_code_of_its_own() -> None:
    launched = {"launcher.log": torchrun_report({0: -15, 1: 1}, root=1)}
    assert told(report_of({"rank1.log": RECORD + BODY} | launched)) == (Kind.DEAD_RANK, Cause.EXCEPTION, {1})
