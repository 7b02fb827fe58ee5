"""Four ranks against four: nothing tells who is right."""

from pardbg.watchdog.model.names import AbsenceReason, CollectorName, Confidence, JobSource, Kind, Mismatch, Scope, Status
from pardbg.watchdog.model.report import (
    CollectiveRef,
    Coverage,
    Divergence,
    EvidenceLine,
    Finding,
    GroupRef,
    Job,
    Report,
    Side,
    Software,
    Subject,
    Unknown,
)


def desync() -> Report:
    left, right = (0, 1, 2, 3), (4, 5, 6, 7)
    verdict = Finding(
        kind=Kind.DESYNC,
        confidence=Confidence.SUPPORTED,
        candidates=(
            *(Subject(scope=Scope.RANK, rank=rank, host="gpu-n01", why="issued all_reduce of 4096x1024") for rank in left),
            *(Subject(scope=Scope.RANK, rank=rank, host="gpu-n02", why="issued all_reduce of 4096x1000") for rank in right),
        ),
        group=GroupRef(name="dp", desc="data parallel", axis="dp", ranks=tuple(range(8))),
        collective=CollectiveRef(op="all_reduce", seq=118, sizes=((4096, 1024),), dtype="BFloat16", src=None, dst=None),
        mismatch=Mismatch.SIZE,
        first_divergence=Divergence(
            group="dp",
            seq=118,
            sides=(
                Side(ranks=left, op="all_reduce", sizes=((4096, 1024),), where="/home/mia/llm/model/head.py:57 loss"),
                Side(ranks=right, op="all_reduce", sizes=((4096, 1000),), where="/home/mia/llm/model/head.py:57 loss"),
            ),
        ),
        claim="Group dp is out of step since seq 118: ranks 0-3 reduce 4096x1024 and ranks 4-7 reduce 4096x1000, so neither "
        "side can finish.",
        evidence=(
            EvidenceLine(
                source=CollectorName.FLIGHT_RECORDER,
                rank=0,
                host="gpu-n01",
                at=None,
                text="seq 118 of dp is all_reduce of 4096x1024, started and not completed",
                origin="/scratch/dumps/nccl_trace_rank_0",
            ),
            EvidenceLine(
                source=CollectorName.FLIGHT_RECORDER,
                rank=4,
                host="gpu-n02",
                at=None,
                text="seq 118 of dp is all_reduce of 4096x1000, started and not completed",
                origin="/scratch/dumps/nccl_trace_rank_4",
            ),
        ),
        advice=(
            "Compare what the two hosts load: a vocabulary of 1000 and one of 1024 entries come from different configurations.",
        ),
    )
    mismatch = Finding(
        kind=Kind.CONFIG_MISMATCH,
        confidence=Confidence.SUGGESTED,
        culprits=(Subject(scope=Scope.HOST, host="gpu-n02"),),
        claim="Host gpu-n02 runs another image (train:2026-03-01) than gpu-n01 (train:2026-03-12).",
    )
    return Report(
        pardbg_version="0.1.0",
        job=Job(id=None, source=JobSource.FILES, world_size=8),
        status=Status.HUNG,
        verdict=verdict,
        findings=(verdict, mismatch),
        set_aside=(),
        unknowns=tuple(
            Unknown(
                rank=rank,
                host=None,
                collector=CollectorName.STACKS,
                reason=AbsenceReason.EMPTY,
                detail="no stack file among the files given",
            )
            for rank in range(8)
        ),
        coverage=Coverage(ranks_expected=8, ranks_seen=8, by_collector={"flight-recorder": 8}),
        layout=None,
        software=(Software(hosts=(), torch=None, nccl="2.27.3", driver=None, python=None),),
        decided_at="2026-03-14T09:02:11Z",
        sampled_at=(),
        took_s=0.3,
        notes=("Files are one sample: an operation outstanding there counts as hung.",),
    )
