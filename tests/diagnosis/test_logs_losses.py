"""Logs that hold consequences alone: nobody is named, whoever says nothing may have gone first, and it counts as open."""

import pytest

from pardbg.watchdog.model.names import Cause, Kind
from pardbg.watchdog.outputs.exit_code import exit_code
from tests.collectors.dumps import make_entry
from tests.diagnosis.live_evidence import frame
from tests.diagnosis.log_files import PEER_GONE, TRACEBACK, candidates, job, report_of, should_dump, stack, told
from tests.diagnosis.test_hand_made import evidence_from

NOTHING: tuple[Kind, None, set[int]] = (Kind.INSUFFICIENT_EVIDENCE, None, set())
SEND = "RuntimeError: [/gloo/transport/tcp/unbound_buffer.cc:116] Timed out waiting 1800000ms for send operation to complete\n"
LOADING = (frame("__next__", 733, "/opt/venv/lib/python3.11/site-packages/torch/utils/data/dataloader.py"), frame("step", 3))
FINISHED = "2026-11-29 14:20:00,120 INFO Training completed.\n"
CHATTER = "2026-11-29 13:58:01,114 | INFO | trainer | resuming\n"


def test_where_all_but_one_lost_the_store_that_one_may_have_gone_first() -> None:
    report = report_of({f"rank{rank}.log": should_dump(rank) for rank in (1, 2, 3)} | job(4))
    assert told(report) == NOTHING
    assert candidates(report) == {0}
    assert exit_code(report) == 4
    assert report.verdict is not None
    assert report.verdict.victims == (1, 2, 3)
    assert "it may be rank 0, of which nothing that was read tells" in report.verdict.claim


def test_where_everybody_lost_a_peer_nobody_is_a_candidate() -> None:
    report = report_of({f"rank{rank}.log": f"[rank{rank}]: {PEER_GONE}" for rank in range(3)} | job(3))
    assert (told(report), candidates(report)) == (NOTHING, set())


@pytest.mark.parametrize(
    "stamp", ["", "2026-11-29 14:33:00 ", "[2026-11-29T14:33:00.123Z] ", "\x1b[33m2026-11-29 14:33:00,123 "]
)
@pytest.mark.parametrize("chatter", ["", CHATTER])
def test_a_timeout_is_the_ranks_that_signs_it_whatever_stands_before_it(stamp: str, chatter: str) -> None:
    """C40: with the exception of another rank it is a consequence of that."""
    waited = {"a.txt": f"{chatter}{stamp}[rank2]: {SEND}"}
    raised = {"b.txt": "".join(f"[rank0]: {line}\n" for line in TRACEBACK.format(exception="ValueError: x").splitlines())}
    assert told(report_of(waited | job(3))) == NOTHING
    assert told(report_of(waited | raised | job(3))) == (Kind.DEAD_RANK, Cause.EXCEPTION, {0})


def test_connections_that_close_after_the_training_are_no_finding() -> None:
    lost = {"rank1.log": should_dump(1)}
    assert report_of(lost | {"rank0.log": FINISHED} | job(2)).verdict is None


def test_a_loss_of_a_rank_that_lives_elsewhere_is_history() -> None:
    lost = {"rank1.log": should_dump(1)} | job(2)
    assert report_of(lost, stack(1, *LOADING)).verdict is None
    rings = evidence_from({rank: [make_entry(0), make_entry(1)] for rank in range(2)})
    assert report_of(lost, *rings).verdict is None


def test_a_launchers_own_end_of_all_ranks_is_no_loss() -> None:
    text = "[rank{0}]: W1129 14:23:01.755000 9 api.py:1028] Received Signals.SIGTERM death signal, shutting down workers\n"
    assert report_of({f"rank{rank}.log": text.format(rank) for rank in range(2)} | job(2)).verdict is None


def test_connections_that_close_once_all_have_returned_are_no_loss() -> None:
    ends = ", ".join(
        f'{{"rank": {rank}, "pid": {rank + 1}, "process": {{"state": "gone", "exit_code": 0}}}}' for rank in range(2)
    )
    ended = {"job.json": f'{{"job": "j", "world_size": 2, "ranks": [{ends}]}}'}
    assert report_of({"rank1.log": should_dump(1)} | ended).verdict is None
