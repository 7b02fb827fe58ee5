"""Rank 37 of 40 is in torch.save and never joined the experts' all-to-all."""

from pardbg.watchdog.model.names import Cause, CollectorName, Confidence, JobSource, Kind, Scope, Status
from pardbg.watchdog.model.report import (
    Action,
    Axis,
    CollectiveRef,
    Coverage,
    EvidenceLine,
    Finding,
    GroupRef,
    Job,
    LayoutRef,
    Report,
    Software,
    Subject,
)

SAMPLED_AT = ("2026-03-14T02:17:40Z", "2026-03-14T02:17:45Z")


def checkpoint_io() -> Report:
    everyone_else = tuple(rank for rank in range(40) if rank != 37)
    stacks = "py-spy dump --json --pid 21877"
    verdict = Finding(
        kind=Kind.MISSING_PARTICIPANT,
        cause=Cause.CHECKPOINT_IO,
        confidence=Confidence.ESTABLISHED,
        culprits=(
            Subject(
                scope=Scope.RANK,
                rank=37,
                host="gpu-n05",
                pid=21877,
                coords={"dp": 4, "ep": 5},
                why="has not issued seq 4812 of ep_4, and was in the same call in both samples",
            ),
        ),
        victims=everyone_else,
        group=GroupRef(name="ep_4", desc="expert parallel", axis="ep", ranks=tuple(range(32, 40))),
        collective=CollectiveRef(op="all_to_all", seq=4812, sizes=((8192, 4096),), dtype="BFloat16", src=None, dst=None),
        since_s=312.0,
        claim="39 ranks wait for rank 37 on gpu-n05, which never joined the expert all_to_all: it has been in torch.save "
        "for 5 min 12 s.",
        evidence=(
            EvidenceLine(
                source=CollectorName.STACKS,
                rank=37,
                host="gpu-n05",
                at=SAMPLED_AT[1],
                text="_save (torch/serialization.py:944) < save (torch/serialization.py:628) < save_checkpoint (train.py:212), "
                "the same in both samples",
                origin=stacks,
            ),
            *(
                EvidenceLine(
                    source=CollectorName.FLIGHT_RECORDER,
                    rank=rank,
                    host="gpu-n05",
                    at=SAMPLED_AT[1],
                    text="all_to_all seq 4812 of ep_4 started and not completed, in both samples",
                    origin=f"http://gpu-n05:2937{rank % 8}/handler/dump_nccl_trace_json",
                )
                for rank in range(32, 40)
                if rank != 37
            ),
            EvidenceLine(
                source=CollectorName.FLIGHT_RECORDER,
                rank=37,
                host="gpu-n05",
                at=SAMPLED_AT[1],
                text="the last operation of ep_4 is seq 4811, completed",
                origin="http://gpu-n05:29375/handler/dump_nccl_trace_json",
            ),
            EvidenceLine(
                source=CollectorName.HOST,
                rank=37,
                host="gpu-n05",
                at=SAMPLED_AT[1],
                text="in state D, no byte written between the samples; fd 88 is open for writing on an NFS mount",
                origin="/proc/21877/io",
            ),
        ),
        advice=("Write checkpoints to a local disk first, so that a stalled file server does not hold the job.",),
        actions=(
            Action(
                text="See where the checkpoint is written, and whether that mount answers",
                command="ssh gpu-n05 'readlink /proc/21877/fd/88; timeout 5 stat -f /mnt/checkpoints'",
                effect="nothing changes: it only reads",
            ),
            Action(
                text="If the file server does not come back, end the job and start again from the last whole checkpoint",
                command="scancel 48213",
                effect="the job ends; work since the last checkpoint is lost",
            ),
        ),
    )
    dp_wait = Finding(
        kind=Kind.MISSING_PARTICIPANT,
        confidence=Confidence.SUPPORTED,
        culprits=tuple(Subject(scope=Scope.RANK, rank=rank, host="gpu-n05") for rank in range(32, 40)),
        victims=tuple(range(32)),
        group=GroupRef(name="dp_all", desc="data parallel", axis="dp", ranks=tuple(range(40))),
        collective=CollectiveRef(op="all_reduce", seq=1203, sizes=((1,),), dtype="Float", src=None, dst=None),
        claim="Ranks 0-31 wait in all_reduce seq 1203 of dp_all for ranks 32-39, which wait for rank 37 themselves.",
    )
    return Report(
        pardbg_version="0.1.0",
        job=Job(id="48213", source=JobSource.SLURM, world_size=40, attempt=0),
        status=Status.HUNG,
        verdict=verdict,
        findings=(verdict,),
        set_aside=(dp_wait,),
        unknowns=(),
        coverage=Coverage(ranks_expected=40, ranks_seen=40, by_collector={"flight-recorder": 40, "stacks": 6, "host": 40}),
        layout=LayoutRef(
            axes={"dp": Axis(size=5, stride=8), "ep": Axis(size=8, stride=1)}, source="process groups of the flight recorder"
        ),
        software=(
            Software(
                hosts=("gpu-n01", "gpu-n02", "gpu-n03", "gpu-n04", "gpu-n05"),
                torch="2.8.0",
                nccl="2.27.3",
                driver="570.86.15",
                python="3.11.9",
            ),
        ),
        decided_at="2026-03-14T02:17:46Z",
        sampled_at=SAMPLED_AT,
        took_s=6.2,
        notes=(),
    )
