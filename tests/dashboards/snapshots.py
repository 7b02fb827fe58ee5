"""What agents know, made up: a job in every state, of any size."""

from collections.abc import Callable

import msgspec

from pardbg.dashboards.scene import CardShown
from pardbg.watchdog.model.incident import Incident, IncidentState
from pardbg.watchdog.model.names import Cause, Confidence, JobSource, Kind, Scope, Status
from pardbg.watchdog.model.report import Coverage, Finding, Job, Report, Subject
from pardbg.watchdog.model.watched import AgentSnapshot, JobState, WatchedJob, WatchedRank
from pardbg.watchdog.model.watched_layer import LayerIllness, WatchedLayer

HOST = "gpu-n05"
NOW = "2026-11-30T06:15:00.000Z"
NOW_S = 1796019300.0
CLAIM = "rank 2 has not joined barrier of the default_pg group [0-7]; it is in a checkpoint write; 7 ranks wait, for 34 s"


def report(claim: str = CLAIM, status: Status = Status.HUNG) -> Report:
    finding = Finding(
        kind=Kind.MISSING_PARTICIPANT,
        cause=Cause.CHECKPOINT_IO,
        confidence=Confidence.ESTABLISHED,
        culprits=(Subject(scope=Scope.RANK, rank=2, host=HOST),),
        claim=claim,
    )
    return Report(
        pardbg_version="0.1.0",
        job=Job(id="48213", source=JobSource.SLURM, world_size=8),
        status=status,
        verdict=finding,
        findings=(finding,),
        set_aside=(),
        unknowns=(),
        coverage=Coverage(ranks_expected=8, ranks_seen=8, by_collector={}),
        layout=None,
        software=(),
        decided_at=NOW,
        sampled_at=(),
        took_s=4.0,
        notes=(),
    )


def incident(claim: str = CLAIM) -> Incident:
    return Incident(
        id="20261130-061436-4f2a",
        job="48213",
        attempt=0,
        world="n05:29500|8|0",
        host=HOST,
        state=IncidentState.OPEN,
        opened_at="2026-11-30T06:14:36.000Z",
        updated_at=NOW,
        report=report(claim),
    )


def healthy_rank(number: int) -> WatchedRank:
    return WatchedRank(
        rank=number,
        local_rank=number,
        pid=1000 + number,
        started_ticks=1,
        uid=1000,
        state="R",
        quiet_s=0.2,
        limit_s=30.0,
        step=100 + number % 2,
        step_s=0.5 + number / 100,
        routed_step=99,
        assignments=65_536,
        drop_ratio=0.01,
    )


def layer(number: int, load: float = 1.2, illnesses: tuple[LayerIllness, ...] = ()) -> WatchedLayer:
    """An MoE layer of 64 experts on 4 EP ranks, whose busiest expert has so many times the mean load."""
    return WatchedLayer(
        layer=number,
        name=f"model.layers.{number}.mlp.router",
        step=99,
        drop_ratio=max(0.0, (load - 1.25) / 4),
        predicted_drop_ratio=max(0.0, (load - 1.25) / 4),
        load_max_ratio=load,
        max_violation_ratio=load - 1,
        load_variation_ratio=load / 10,
        load_entropy_ratio=1 - (load - 1) / 20,
        token_entropy_ratio=0.7,
        dead_ratio=0.0,
        top_ratio=load / 64,
        z=17.0,
        aux_loss=1 + load / 100,
        ep_load_max_ratio=1.0 + load / 10,
        ep_shares=(0.25 + load / 40, 0.25, 0.25, 0.25 - load / 40),
        router_grad_norm=0.3,
        illnesses=illnesses,
    )


def routed(watched: WatchedJob) -> WatchedJob:
    """That job with two MoE layers, one of which drops tokens."""
    spike = LayerIllness(kind=Kind.DROP_SPIKE, since_step=90)
    return msgspec.structs.replace(watched, layers=(layer(0), layer(3, 2.0, (spike,))))


def job(job_id: str = "48213", size: int = 8, rank: Callable[[int], WatchedRank] = healthy_rank) -> WatchedJob:
    return WatchedJob(
        job_id=job_id,
        source=JobSource.SLURM,
        world=f"n05:29500|{size}|0",
        world_size=size,
        attempt=0,
        uids=(1000,),
        state_since=NOW,
        ranks=tuple(rank(number) for number in range(size)),
    )


def hung_job(claim: str = CLAIM) -> WatchedJob:
    return msgspec.structs.replace(job(), state=JobState.HUNG, incident=incident(claim))


def snapshot(*jobs: WatchedJob) -> AgentSnapshot:
    return AgentSnapshot(
        host=HOST,
        version="0.1.0",
        taken_at=NOW,
        jobs=jobs,
        problems={"store": "the disk is full"},
        counts={"scans": 3, "refusals": 0},
        unsent=1,
    )


def card(number: int) -> CardShown:
    return CardShown(
        host=HOST,
        gpu=str(number),
        uuid=f"GPU-{number:08x}-aaaa",
        job_id="48213",
        world="n05:29500|8|0",
        rank=str(number),
        utilization_ratio=0.97,
        memory_ratio=0.4,
        memory_used_bytes=60e9,
        memory_total_bytes=80e9,
        power_watts=640.0,
        power_limit_watts=700.0,
        sm_clock_hertz=1.98e9,
        memory_clock_hertz=2.6e9,
        temperature_celsius=61.0,
        memory_temperature_celsius=77.0,
        clock_reasons=("power cap",),
        pcie_replays=2,
        nvlink_errors=7,
        ecc_corrected=1,
        ecc_uncorrected=0,
        last_xid=94,
    )
