"""Every free text is what an attacker, or an unlucky log file, may put there."""

from pardbg.watchdog.model.names import AbsenceReason, Cause, CollectorName, Confidence, JobSource, Kind, Scope, Status
from pardbg.watchdog.model.report import (
    Action,
    Axis,
    CollectiveRef,
    Coverage,
    Divergence,
    EvidenceLine,
    Finding,
    GroupRef,
    Job,
    LayoutRef,
    Report,
    Side,
    Software,
    Subject,
    Unknown,
)

HOSTILE = "</script><img src=x onerror=alert(1)> \x1b[2J\x1b]0;owned\x07 `rm -rf` | @channel \u202egnp.exe \udcff\r\n# _end_"


def hostile() -> Report:
    finding = Finding(
        kind=Kind.DEAD_RANK,
        cause=Cause.EXCEPTION,
        confidence=Confidence.SUGGESTED,
        culprits=(Subject(scope=Scope.RANK, rank=1, host=HOSTILE, pid=7, coords={HOSTILE: 1}, why=HOSTILE),),
        candidates=(Subject(scope=Scope.LINK, hosts=(HOSTILE, HOSTILE), why=HOSTILE),),
        victims=(0,),
        group=GroupRef(name=HOSTILE, desc=f"{HOSTILE}!", axis=HOSTILE, ranks=(0, 1)),
        collective=CollectiveRef(op=HOSTILE, seq=1, sizes=(), dtype=HOSTILE, src=None, dst=None),
        first_divergence=Divergence(group=HOSTILE, seq=1, sides=(Side(ranks=(0,), op=HOSTILE, sizes=(), where=HOSTILE),)),
        claim=HOSTILE,
        evidence=(EvidenceLine(source=CollectorName.RANK_LOG, rank=1, host=HOSTILE, at=HOSTILE, text=HOSTILE, origin=HOSTILE),),
        advice=(HOSTILE,),
        actions=(Action(text=HOSTILE, command=HOSTILE, effect=HOSTILE),),
    )
    return Report(
        pardbg_version=HOSTILE,
        job=Job(id=HOSTILE, source=JobSource.FILES, world=HOSTILE, world_size=2),
        status=Status.FAILED,
        verdict=finding,
        findings=(finding,),
        set_aside=(finding,),
        unknowns=(
            Unknown(rank=0, host=HOSTILE, collector=CollectorName.STACKS, reason=AbsenceReason.UNREADABLE, detail=HOSTILE),
            Unknown(rank=None, host=HOSTILE, collector=CollectorName.GPU, reason=AbsenceReason.DENIED, detail=HOSTILE),
        ),
        coverage=Coverage(ranks_expected=2, ranks_seen=1, by_collector={HOSTILE: 1}),
        layout=LayoutRef(axes={HOSTILE: Axis(size=2, stride=1)}, source=HOSTILE),
        software=(Software(hosts=(HOSTILE,), torch=HOSTILE, nccl=HOSTILE, driver=HOSTILE, python=HOSTILE),),
        decided_at=HOSTILE,
        sampled_at=(HOSTILE,),
        took_s=1.0,
        notes=(HOSTILE,),
    )
