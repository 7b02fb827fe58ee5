"""The kernel killed rank 3, and the launcher ended the others."""

from pardbg.watchdog.model.names import AbsenceReason, Cause, CollectorName, Confidence, JobSource, Kind, Scope, Status
from pardbg.watchdog.model.report import (
    Action,
    CollectiveRef,
    Coverage,
    EvidenceLine,
    Finding,
    GroupRef,
    Job,
    Report,
    Subject,
    Unknown,
)


def dead_rank() -> Report:
    verdict = Finding(
        kind=Kind.DEAD_RANK,
        cause=Cause.OOM_KILLED,
        confidence=Confidence.ESTABLISHED,
        culprits=(
            Subject(
                scope=Scope.RANK,
                rank=3,
                host="worker-0",
                pid=2291,
                why="its process went first: the kernel killed it for memory at 11:20:31, the others ended from 11:20:41 on",
            ),
        ),
        victims=(0, 1, 2, 4, 5, 6, 7),
        group=GroupRef(name="default_pg", desc="default_pg", axis=None, ranks=tuple(range(8))),
        collective=CollectiveRef(op="all_reduce", seq=2207, sizes=((8388608,),), dtype="Float", src=None, dst=None),
        claim="The kernel killed rank 3 on worker-0 for memory at 11:20:31Z; the 7 other ranks waited for it in all_reduce "
        "seq 2207 until they were ended.",
        evidence=(
            EvidenceLine(
                source=CollectorName.KERNEL_LOG,
                rank=None,
                host="worker-0",
                at="2026-03-13T11:20:31Z",
                text="Memory cgroup out of memory: Killed process 2291 (python) total-vm:201326592kB, anon-rss:66957312kB",
                origin="kernel_worker-0.log",
            ),
            EvidenceLine(
                source=CollectorName.RANK_LOG,
                rank=0,
                host="worker-0",
                at="2026-03-13T11:20:41Z",
                text="DistBackendError: Connection closed by peer [10.1.0.4]:41233",
                origin="logs/none_a1b2/attempt_0/0/stderr.log",
            ),
        ),
        advice=("Lower the memory of the data loader's workers: of 64 GiB, 41 GiB were theirs.", "Or ask for more memory."),
        actions=(
            Action(
                text="See what the limit was",
                command="kubectl describe pod train/worker-0",
                effect="nothing changes: it only reads",
            ),
        ),
    )
    abort = Finding(
        kind=Kind.DEAD_RANK,
        cause=Cause.EXCEPTION,
        confidence=Confidence.SUPPORTED,
        culprits=(Subject(scope=Scope.RANK, rank=0, host="worker-0", pid=2288),),
        claim="Rank 0 ended with DistBackendError 10 s after rank 3: a cascade.",
    )
    return Report(
        pardbg_version="0.1.0",
        job=Job(id="train/llama-sft", source=JobSource.KUBERNETES, world_size=8, attempt=0),
        status=Status.FAILED,
        verdict=verdict,
        findings=(verdict,),
        set_aside=(abort,),
        unknowns=(
            Unknown(
                rank=3,
                host="worker-0",
                collector=CollectorName.STACKS,
                reason=AbsenceReason.GONE,
                detail="the process ended before the scan",
            ),
        ),
        coverage=Coverage(ranks_expected=8, ranks_seen=8, by_collector={"rank-log": 8, "kernel-log": 8}),
        layout=None,
        software=(),
        decided_at="2026-03-13T11:31:02Z",
        sampled_at=("2026-03-13T11:31:01Z",),
        took_s=1.1,
        notes=(),
    )
