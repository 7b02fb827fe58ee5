"""The job that pardbg was begun for: 40 ranks on eight nodes, rank 37 in a checkpoint that never ends. `make test-seed`."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.live.running import running_job

from pardbg.collectors.jobs.query import JobQuery
from pardbg.watchdog.outputs.as_json import render_json
from pardbg.watchdog.scan.nodes.nodes_site import NodesSite
from pardbg.watchdog.scan.scan import Settings, scan
from pardbg.watchdog.transport.conversation import Conversation
from pardbg.watchdog.transport.local import through_local

pytestmark = [pytest.mark.live, pytest.mark.slow, pytest.mark.timeout(600)]

RANKS, CULPRIT, NODES, SECONDS = 40, 37, 8, 60.0
ON_NODES = ["sh", "-c", f'export SLURMD_NODENAME=n$((RANK / {RANKS // NODES} + 1)); exec "$@"', "-"]


def test_seed_job_is_diagnosed_through_eight_nodes(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    job = running_job("seed", folder=tmp_path, ranks=RANKS, launcher="plain", prefix=ON_NODES, env={"PARDBG_JOB": "seed"})
    with job as running:
        running.wait_until_hung(settle_s=0.0, deadline_s=400.0)
        began_s = time.monotonic()
        with Conversation(through_local([f"n{number + 1}" for number in range(NODES)])) as conversation:
            scanned = scan(NodesSite(conversation, JobQuery(job="seed")), Settings(), lambda _: None)
        took_s = time.monotonic() - began_s
    record_property("seconds_from_the_hang", took_s)
    verdict = scanned.report.verdict
    assert verdict is not None, render_json(scanned.report)
    assert (verdict.kind.value, verdict.cause and verdict.cause.value) == ("missing-participant", "checkpoint-io")
    assert [(subject.rank, subject.host) for subject in verdict.culprits] == [(CULPRIT, f"n{NODES}")]
    assert verdict.victims == tuple(rank for rank in range(RANKS) if rank != CULPRIT)
    assert scanned.report.coverage.ranks_seen == RANKS
    assert took_s < SECONDS
