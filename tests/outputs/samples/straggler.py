"""One host reads its data slowly and makes every step 1.37 times as long."""

from pardbg.watchdog.model.names import Cause, Confidence, JobSource, Kind, Scope, Status
from pardbg.watchdog.model.report import Cost, Coverage, Finding, Job, Report, Subject

SAMPLED_AT = ("2026-03-14T02:17:40Z", "2026-03-14T02:17:45Z")


def straggler() -> Report:
    verdict = Finding(
        kind=Kind.STRAGGLER,
        cause=Cause.DATA_LOADING,
        confidence=Confidence.SUPPORTED,
        culprits=tuple(
            Subject(
                scope=Scope.RANK,
                rank=rank,
                host="gpu-n02",
                pid=5000 + rank,
                coords={"tp": rank % 4, "dp": 1},
                why="waits 0.61 s a step for its data loader, against 0.02 s elsewhere",
            )
            for rank in range(4, 8)
        ),
        victims=(0, 1, 2, 3, *range(8, 16)),
        cost=Cost(slowdown=1.37, share=0.27),
        since_step=18200,
        claim="Every step since step 18200 waits for ranks 4-7 on gpu-n02, which wait for their data loaders.",
        advice=("Compare the disk and the network of gpu-n02 with those of its neighbours.",),
    )
    return Report(
        pardbg_version="0.1.0",
        job=Job(id="48300", source=JobSource.SLURM, world_size=16, attempt=0),
        status=Status.SLOW,
        verdict=verdict,
        findings=(verdict,),
        set_aside=(),
        unknowns=(),
        coverage=Coverage(ranks_expected=16, ranks_seen=16, by_collector={"gpu": 16, "flight-recorder": 16}),
        layout=None,
        software=(),
        decided_at="2026-03-14T02:17:46Z",
        sampled_at=SAMPLED_AT,
        took_s=31.0,
        notes=(),
    )
