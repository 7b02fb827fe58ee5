"""`pardbg scan` on real jobs that nobody prepared: the right kind, rank and cause, and no victim blamed."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.live.running import RunningJob, process_state, running_job
from tests.live.scanning import Case, Scan, run_scan

pytestmark = pytest.mark.live

MISSING, DEAD, DESYNC = "missing-participant", "dead-rank", "desync"
LONGEST_INTERVAL_S = 15.0  # a wait that is seen needs 5.3 s at most; one that is not is watched for 30 s
OFF = {"TORCH_FR_BUFFER_SIZE": "0"}
EDITS = {"skips": "skipped"}  # one that is added blocks its rank at once: nothing follows to tell it by
OUT_OF_REACH = {"gil", "regex", "stopped", "killed-store", "killed-awaited", "store-get", "store-wait"}

# What make test runs; all others are in make test-all.
EVERYDAY = (
    Case("train", "checkpoint", MISSING, "checkpoint-io", {2}),
    Case("train", "gil", MISSING, "gil-held", {2}, env=OFF),
    Case("orders", "skips", DESYNC, None, {2}),
    Case("served", "skips", DESYNC, None, {2}),
    Case("orders", "opposite-order", "order-inversion", None, {2}),
    Case("orders", "both-receive-first", "p2p-deadlock", None, {1, 2}, env=OFF),
    Case("grid", "checkpoint", MISSING, "checkpoint-io", {5}, ranks=8),
    Case("train", "killed-store", DEAD, "signal", {2}, launcher="plain"),
)
REST = (
    Case("train", "exception-sleep", DEAD, "exception", {2}),
    Case("train", "lock", MISSING, "lock", {2}, env=OFF),
    Case("styles", "batch-p2p", MISSING, "file-io", {2}),  # nothing but source lines shows that anybody waits
    Case("train", "left-loop-return", MISSING, "left-loop", {2}),
    Case("train", "store-get", MISSING, "store-wait", {2}),
    Case("train", "loader", MISSING, "data-loading", {2}),
    Case("train", "checkpoint-by-path", MISSING, "checkpoint-io", {2}),
    Case("train", "read-pipe", MISSING, "file-io", {2}, env=OFF),
    Case("train", "read-file", MISSING, "file-io", {2}),
    Case("train", "open-file", MISSING, "file-io", {2}),
    Case("train", "receive", MISSING, "network-io", {2}),
    Case("train", "loader-sleeps", MISSING, "data-loading", {2}, env=OFF),
    Case("train", "queue", MISSING, "lock", {2}),
    Case("train", "file-lock", MISSING, "lock", {2}),
    Case("train", "busy-loop", MISSING, "busy-loop", {2}),
    Case("train", "busy-loop", MISSING, "busy-loop", {2}, env=OFF),
    Case("train", "regex", MISSING, "gil-held", {2}),
    Case("train", "sleep", MISSING, "sleeping", {2}),
    Case("train", "command", MISSING, "user-code", {2}),
    Case("train", "stopped", MISSING, "stopped", {2}),
    Case("train", "stopped", MISSING, "stopped", {2}, env=OFF),
    Case("train", "store-wait", MISSING, "store-wait", {2}, env=OFF),
    Case("train", "left-loop-break", MISSING, "left-loop", {2}, env=OFF),
    Case("train", "left-loop-finish", MISSING, "left-loop", {2}),
    Case("train", "exception-return", DEAD, "exception", {2}),
    Case("train", "killed-awaited", DEAD, "signal", {2}, launcher="plain"),
    Case("orders", "adds", DESYNC, None, {2}),
    Case("orders", "other-op", DESYNC, None, {2}),
    Case("orders", "opposite-order", "order-inversion", None, {2}, env=OFF),
    Case("orders", "both-send-first", "p2p-deadlock", None, {1, 2}),
    Case("orders", "never-sends", "p2p-unmatched", None, {3}),
    Case("orders", "never-sends", "p2p-unmatched", None, {3}, env=OFF),
    Case("orders", "never-sends-host", MISSING, "file-io", {3}),
    Case("grid", "checkpoint", MISSING, "checkpoint-io", {5}, ranks=8, env=OFF),
)
STYLES = (
    *("ddp", "ddp-buffers", "fsdp2", "dtensor", "functional", "pipeline", "isend-irecv", "work-wait-subgroup"),
    *("send-recv", "monitored-barrier", "all-gather-tensor", "scatter-gather", "broadcast-objects", "group-never"),
)


def _all_cases() -> Iterator[Any]:
    for case in EVERYDAY:
        yield pytest.param(case, id=case.name)
    for case in (*REST, *(Case("styles", style, MISSING, "file-io", {2}) for style in STYLES)):
        yield pytest.param(case, id=case.name, marks=pytest.mark.slow)


@contextmanager
def hung(case: Case, folder: Path, env: Mapping[str, str] | None = None, prefix: Sequence[str] = ()) -> Iterator[RunningJob]:
    """The case's job, at its fault; ``env`` stands in place of the case's own."""
    option = "--style" if case.program == "styles" else "--fault"
    with running_job(
        case.program,
        option,
        case.fault,
        folder=folder,
        ranks=case.ranks,
        launcher=case.launcher,
        job_id=case.name,
        env=case.env if env is None else env,
        prefix=prefix,
    ) as job:
        job.wait_until_hung()
        yield job


@pytest.mark.parametrize("case", list(_all_cases()))
def test_verdict_names_kind_rank_and_cause(case: Case, tmp_path: Path) -> None:
    with hung(case, tmp_path / "job") as job:
        before = {rank: process_state(pid) for rank, pid in job.pids.items()}
        selector = ("--job", case.name) if case.launcher == "torchrun" else ("--pid", str(job.pids[0]))
        scan = run_scan(selector, "--save", str(tmp_path / "saved"))
        after = {rank: process_state(pid) for rank, pid in job.pids.items()}

    assert (scan.kind, scan.cause, scan.blamed) == (case.kind, case.cause, case.culprits), scan.summary
    assert scan.exit_code == 3
    assert not scan.blamed & set(scan.verdict["victims"])
    assert scan.interval_s < LONGEST_INTERVAL_S
    assert scan.verdict["since_s"] is None or scan.verdict["since_s"] >= 4
    if case.env:
        assert scan.verdict["confidence"] in {"supported", "suggested"}
    assert {rank for rank, state in after.items() if state == "T"} == {rank for rank, state in before.items() if state == "T"}
    _check_divergence(case, scan)
    _check_recorders(case, scan)
    again = Scan.of_files(tmp_path / "saved")
    assert (again.kind, again.cause, again.blamed) == (case.kind, case.cause, case.culprits), again.summary


def _check_divergence(case: Case, scan: Scan) -> None:
    """Sequence numbers and the lines on both sides, although nobody prepared the job: the ranks are attached to."""
    if case.kind != DESYNC or case.env:
        return
    assert scan.verdict["edit"] == EDITS.get(case.fault)
    assert scan.verdict["first_divergence"]["seq"] == scan.verdict["collective"]["seq"] == 31
    assert all("orders.py:" in side["where"] for side in scan.verdict["first_divergence"]["sides"])


def _check_recorders(case: Case, scan: Scan) -> None:
    """Every rank's recorder was read, but for those of ranks that cannot answer."""
    if case.env or case.fault in OUT_OF_REACH or case.program == "styles":  # gloo's recorder does not show send and recv
        return
    told = [unknown for unknown in scan.report["unknowns"] if unknown["collector"] == "flight-recorder"]
    assert scan.report["coverage"]["by_collector"].get("flight-recorder") == case.ranks, told
