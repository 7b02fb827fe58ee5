"""512 ranks: the device of rank 300 fell off the bus; groups are strided, and much else was noticed."""

from pardbg.watchdog.model.names import AbsenceReason, Cause, CollectorName, Confidence, JobSource, Kind, Scope, Status
from pardbg.watchdog.model.report import (
    Action,
    Axis,
    CollectiveRef,
    Coverage,
    Device,
    EvidenceLine,
    Finding,
    GroupRef,
    Job,
    LayoutRef,
    Report,
    Software,
    Subject,
    Unknown,
)

SAMPLED_AT = ("2026-03-14T02:17:40Z", "2026-03-14T02:17:45Z")


def device_stuck() -> Report:
    tensor_group = tuple(range(296, 304))
    replicas = tuple(range(4, 512, 8))
    verdict = Finding(
        kind=Kind.DEVICE_STUCK,
        cause=Cause.XID,
        confidence=Confidence.ESTABLISHED,
        culprits=(
            Subject(
                scope=Scope.DEVICE,
                rank=300,
                host="dgx-038",
                pid=771204,
                device=Device(index=4, uuid="GPU-5d1f0c2a-7b1e-4a55-9c37-0c5b8e3f7a10", pci_bus_id="00000000:9B:00.0"),
                coords={"tp": 4, "dp": 37},
                why="launched all_gather seq 90417 of tp_37, which its 7 peers completed; Xid 79 in the kernel log 4 s later",
            ),
        ),
        victims=tuple(rank for rank in range(512) if rank != 300),
        group=GroupRef(name="tp_37", desc="tensor parallel", axis="tp", ranks=tensor_group),
        collective=CollectiveRef(op="all_gather", seq=90417, sizes=((2048, 8192),), dtype="BFloat16", src=None, dst=None),
        since_s=1840.0,
        claim="511 ranks wait for the device of rank 300 on dgx-038: it fell off the bus (Xid 79) 30 min 40 s ago and finishes "
        "nothing.",
        evidence=(
            EvidenceLine(
                source=CollectorName.KERNEL_LOG,
                rank=None,
                host="dgx-038",
                at="2026-03-14T01:47:06Z",
                text="NVRM: Xid (PCI:0000:9b:00): 79, pid=771204, name=python, GPU has fallen off the bus.",
                origin="dmesg --time-format iso",
            ),
            EvidenceLine(
                source=CollectorName.GPU,
                rank=300,
                host="dgx-038",
                at=SAMPLED_AT[1],
                text="the device does not answer",
                origin="nvidia-smi -q -i 00000000:9B:00.0",
            ),
            EvidenceLine(
                source=CollectorName.STACKS,
                rank=300,
                host="dgx-038",
                at=SAMPLED_AT[1],
                text="synchronize (torch/cuda/streams.py:105) < train_step (pretrain.py:388), the same in both samples",
                origin="py-spy dump --json --pid 771204",
            ),
        ),
        advice=("Keep dgx-038 out of the next attempt.",),
        actions=(
            Action(
                text="Take the host out of service",
                command="scontrol update NodeName=dgx-038 State=DRAIN Reason='Xid 79 on 00000000:9B:00.0 in job 1009113'",
                effect="no new job starts on dgx-038",
            ),
        ),
    )
    replicas_wait = Finding(
        kind=Kind.MISSING_PARTICIPANT,
        confidence=Confidence.SUPPORTED,
        culprits=(Subject(scope=Scope.RANK, rank=300, host="dgx-038"),),
        victims=tuple(rank for rank in replicas if rank != 300),
        group=GroupRef(name="dp_4", desc="data parallel", axis="dp", ranks=replicas),
        collective=CollectiveRef(op="reduce_scatter", seq=11302, sizes=((67108864,),), dtype="BFloat16", src=None, dst=None),
        claim="63 ranks wait in reduce_scatter seq 11302 of dp_4 for rank 300.",
    )
    rest = tuple(rank for rank in range(512) if rank not in replicas and rank not in tensor_group)
    world_waits = Finding(
        kind=Kind.MISSING_PARTICIPANT,
        confidence=Confidence.SUPPORTED,
        culprits=tuple(Subject(scope=Scope.RANK, rank=rank) for rank in sorted({*replicas, *tensor_group})),
        victims=rest,
        group=GroupRef(name="default_pg", desc="default_pg", axis=None, ranks=tuple(range(512))),
        collective=CollectiveRef(op="all_reduce", seq=3310, sizes=((2,),), dtype="Float", src=None, dst=None),
        claim="441 ranks wait in all_reduce seq 3310 of default_pg for 71 ranks that wait elsewhere.",
    )
    old_driver = Finding(
        kind=Kind.CONFIG_MISMATCH,
        confidence=Confidence.ESTABLISHED,
        culprits=(Subject(scope=Scope.HOST, host="dgx-011"),),
        claim="Host dgx-011 runs driver 550.54.15; the other 63 hosts run 570.86.15.",
    )
    return Report(
        pardbg_version="0.1.0",
        job=Job(id="1009113", source=JobSource.SLURM, world_size=512, attempt=2),
        status=Status.HUNG,
        verdict=verdict,
        findings=(verdict, old_driver),
        set_aside=(replicas_wait, world_waits),
        unknowns=(
            *(
                Unknown(
                    rank=rank,
                    host="dgx-059",
                    collector=CollectorName.FLIGHT_RECORDER,
                    reason=AbsenceReason.TIMED_OUT,
                    detail=f"http://dgx-059:2937{rank % 8}/ did not answer within 5 s",
                )
                for rank in range(464, 472)
            ),
            Unknown(
                rank=None,
                host=None,
                collector=CollectorName.RAS,
                reason=AbsenceReason.SWITCHED_OFF,
                detail="NCCL_RAS_ENABLE=0 in the environment of the ranks",
            ),
        ),
        coverage=Coverage(
            ranks_expected=512,
            ranks_seen=512,
            by_collector={"flight-recorder": 504, "stacks": 12, "host": 512, "gpu": 512, "kernel-log": 512},
        ),
        layout=LayoutRef(
            axes={"tp": Axis(size=8, stride=1), "dp": Axis(size=64, stride=8)}, source="process groups of the flight recorder"
        ),
        software=(
            Software(
                hosts=tuple(f"dgx-{host:03}" for host in range(1, 65) if host != 11),
                torch="2.8.0",
                nccl="2.27.3",
                driver="570.86.15",
                python="3.12.4",
            ),
            Software(hosts=("dgx-011",), torch="2.8.0", nccl="2.27.3", driver="550.54.15", python="3.12.4"),
        ),
        decided_at="2026-03-14T02:17:58Z",
        sampled_at=SAMPLED_AT,
        took_s=18.4,
        notes=(),
    )
