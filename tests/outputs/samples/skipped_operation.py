"""One rank of four skipped a broadcast: a clear minority."""

from pardbg.watchdog.model.names import Confidence, Edit, JobSource, Kind, Mismatch, Scope, Status
from pardbg.watchdog.model.report import CollectiveRef, Coverage, Divergence, Finding, GroupRef, Job, Report, Side, Subject

SAMPLED_AT = ("2026-03-14T02:17:40Z", "2026-03-14T02:17:45Z")


def skipped_operation() -> Report:
    verdict = Finding(
        kind=Kind.DESYNC,
        confidence=Confidence.ESTABLISHED,
        culprits=(Subject(scope=Scope.RANK, rank=2, host="gpu-n01", pid=902, why="alone against 3 ranks that agree"),),
        victims=(0, 1, 3),
        group=GroupRef(name="tp", desc="tensor parallel", axis="tp", ranks=(0, 1, 2, 3)),
        collective=CollectiveRef(op="broadcast", seq=31, sizes=((1,),), dtype="Long", src=0, dst=None),
        mismatch=Mismatch.OP,
        edit=Edit.SKIPPED,
        first_divergence=Divergence(
            group="tp",
            seq=31,
            sides=(
                Side(ranks=(0, 1, 3), op="broadcast", sizes=((1,),), where="train.py:40 sync_flag"),
                Side(ranks=(2,), op="all_reduce", sizes=((512, 512), (512,)), where=None),
            ),
        ),
        claim="Rank 2 skipped the broadcast at seq 31 of tp, and 3 ranks wait for it there.",
    )
    return Report(
        pardbg_version="0.1.0",
        job=Job(id="tp-test", source=JobSource.LOCAL, world_size=4, attempt=0),
        status=Status.HUNG,
        verdict=verdict,
        findings=(verdict,),
        set_aside=(),
        unknowns=(),
        coverage=Coverage(ranks_expected=4, ranks_seen=4, by_collector={"flight-recorder": 4, "stacks": 4}),
        layout=None,
        software=(),
        decided_at="2026-03-14T02:17:46Z",
        sampled_at=SAMPLED_AT,
        took_s=5.4,
        notes=(),
    )
