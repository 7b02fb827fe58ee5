"""60 of 64 ranks could not be looked at."""

from pardbg.watchdog.model.names import AbsenceReason, CollectorName, Confidence, JobSource, Kind, Status
from pardbg.watchdog.model.report import Action, CollectiveRef, Coverage, EvidenceLine, Finding, GroupRef, Job, Report, Unknown

SAMPLED_AT = ("2026-03-14T02:17:40Z", "2026-03-14T02:17:45Z")


def undetermined() -> Report:
    verdict = Finding(
        kind=Kind.INSUFFICIENT_EVIDENCE,
        confidence=Confidence.SUGGESTED,
        victims=(0, 1, 2, 3),
        group=GroupRef(name="default_pg", desc="default_pg", axis=None, ranks=()),
        collective=CollectiveRef(op="all_reduce", seq=77, sizes=((1024,),), dtype="Float", src=None, dst=None),
        claim="Ranks 0-3 wait in all_reduce seq 77; 60 ranks could not be looked at, so whom they wait for is not known.",
        evidence=(
            EvidenceLine(
                source=CollectorName.STACKS,
                rank=0,
                host="node-a",
                at=SAMPLED_AT[1],
                text="all_reduce (torch/distributed/distributed_c10d.py:2810) < step (train.py:91), the same in both samples",
                origin="py-spy dump --json --pid 4410",
            ),
        ),
        actions=(
            Action(
                text="Let pardbg look at the processes of the other hosts, and ask again",
                command="pardbg scan --job torchrun:exp-9 --via ssh",
                effect="each rank is paused for some milliseconds while its stack is read",
            ),
        ),
    )
    hosts = [f"node-{letter}" for letter in "bcdefghijklmnop"]
    return Report(
        pardbg_version="0.1.0",
        job=Job(id="exp-9", source=JobSource.TORCHRUN, world="10.0.0.1:29500", world_size=64, attempt=1),
        status=Status.UNDETERMINED,
        verdict=verdict,
        findings=(verdict,),
        set_aside=(),
        unknowns=(
            *(
                Unknown(
                    rank=rank,
                    host=hosts[(rank - 4) // 4],
                    collector=CollectorName.STACKS,
                    reason=AbsenceReason.UNREACHABLE if rank < 60 else AbsenceReason.DENIED,
                    detail="no agent, and no way to run a command there"
                    if rank < 60
                    else f"ptrace of pid {9000 + rank}: kernel.yama.ptrace_scope is 2",
                )
                for rank in range(4, 64)
            ),
            *(
                Unknown(
                    rank=rank,
                    host=None,
                    collector=CollectorName.FLIGHT_RECORDER,
                    reason=AbsenceReason.SWITCHED_OFF,
                    detail="TORCH_FR_BUFFER_SIZE is 0",
                )
                for rank in range(4)
            ),
        ),
        coverage=Coverage(ranks_expected=64, ranks_seen=4, by_collector={"flight-recorder": 0, "stacks": 4, "host": 4}),
        layout=None,
        software=(),
        decided_at="2026-03-14T02:18:40Z",
        sampled_at=SAMPLED_AT,
        took_s=60.0,
        notes=("The time limit of 60 s was reached before every host had answered.",),
    )
