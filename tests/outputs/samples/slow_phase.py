"""Rank 0 saves a checkpoint, and moves."""

from pardbg.watchdog.model.names import Cause, Confidence, JobSource, Kind, Scope, Status
from pardbg.watchdog.model.report import CollectiveRef, Coverage, Finding, GroupRef, Job, Report, Subject

SAMPLED_AT = ("2026-03-14T02:17:40Z", "2026-03-14T02:17:45Z")


def slow_phase() -> Report:
    verdict = Finding(
        kind=Kind.SLOW_PHASE,
        cause=Cause.CHECKPOINT_IO,
        confidence=Confidence.ESTABLISHED,
        waiting_for=(
            Subject(scope=Scope.RANK, rank=0, host="gpu-n01", pid=811, why="wrote 1.9 GB between the samples, 5 s apart"),
        ),
        victims=(1, 2, 3),
        group=GroupRef(name="default_pg", desc="default_pg", axis=None, ranks=(0, 1, 2, 3)),
        collective=CollectiveRef(op="barrier", seq=40, sizes=(), dtype=None, src=None, dst=None),
        since_s=48.0,
        claim="Ranks 1-3 wait in barrier seq 40 for rank 0, which has been saving a checkpoint for 48 s and moves.",
    )
    return Report(
        pardbg_version="0.1.0",
        job=Job(id="sft", source=JobSource.LOCAL, world_size=4, attempt=0),
        status=Status.SLOW,
        verdict=verdict,
        findings=(verdict,),
        set_aside=(),
        unknowns=(),
        coverage=Coverage(ranks_expected=4, ranks_seen=4, by_collector={"stacks": 4, "host": 4}),
        layout=None,
        software=(),
        decided_at="2026-03-14T02:17:46Z",
        sampled_at=SAMPLED_AT,
        took_s=5.4,
        notes=(),
    )
