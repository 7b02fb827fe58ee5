"""Jobs that move: somebody makes the others wait, or only seems to (C76, C77, C79, C80, C82, C83, C85, C86)."""

import json
from collections.abc import Callable

from pardbg.watchdog.model.names import Cause, CollectorName, Kind, Status
from pardbg.watchdog.sim.casebook.case import Case, Family, less_seen, near_miss, reported
from pardbg.watchdog.sim.casebook.draw import Draw
from pardbg.watchdog.sim.casebook.job import Job
from pardbg.watchdog.sim.instruction import Op
from pardbg.watchdog.sim.truth import HEALTHY, Answer, Truth

_STEPS, _STEP_S, _LATE_S = 30, 0.5, 0.4
_US_PER_S = 1_000_000
Lateness = Callable[[int, int], float]
"""Seconds by which a rank is late in a step."""


def _moving(draw: Draw, world: int, lateness: Lateness, *, per_host: int = 8) -> Job:
    """Every step all ranks compute, then meet in an all_reduce."""
    job = Job(draw, world, per_host=per_host)
    for step in range(_STEPS):
        job.meet(Op.ALL_REDUCE, {rank: _STEP_S + lateness(rank, step) for rank in job.ranks})
    return job


def _always(*ranks: int) -> Lateness:
    return lambda rank, _: _LATE_S if rank in ranks else 0.0


def _slow(cause: Cause | None, *culprits: int, hosts: tuple[str, ...] = (), acceptable: tuple[Answer, ...] = ()) -> Truth:
    kind, status = Kind.STRAGGLER, Status.SLOW
    return Truth(kind=kind, cause=cause, culprits=culprits, hosts=hosts, status=status, acceptable=acceptable)


def _profile(rank: int, *, loading_s: float, computing_s: float, communicating_s: float) -> str:
    events = [{"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "python"}}]
    now = 1_000_000.0
    spans = (
        ("user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", loading_s),
        ("kernel", "sm90_xmma_gemm_bf16bf16_bf16f32", computing_s),
        ("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", communicating_s),
    )
    for step in range(5):
        length_s = loading_s + computing_s + communicating_s
        mark = {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": now, "dur": length_s * _US_PER_S}
        events.append(mark)
        for category, name, seconds in spans:
            events.append({"ph": "X", "cat": category, "name": name, "ts": now, "dur": seconds * _US_PER_S})
            now += seconds * _US_PER_S
    return json.dumps({"schemaVersion": 1, "distributedInfo": {"rank": rank}, "traceEvents": events})


def _profiled(draw: Draw, late_s: float) -> tuple[Job, int]:
    job = Job(draw, 4)
    culprit = draw.rank(job.ranks)
    for rank in job.ranks:
        is_late = rank == culprit
        waits_s = 0.016 + (0.0 if is_late else late_s)
        loads_s = 0.001 + (late_s if is_late else 0.0)
        job.file(f"profile_rank{rank}.json", _profile(rank, loading_s=loads_s, computing_s=0.1, communicating_s=waits_s))
    return job, culprit


def _delay_before_backward(draw: Draw) -> Case:
    job, culprit = _profiled(draw, 0.15)
    return Case(
        scenario=(
            f"Profiles of four ranks. Three spend 166 ms of each step in NCCL's kernels during backward, rank {culprit} 16 ms. "
            f"Its training loop waits 151 ms for data in each step, theirs 1 ms."
        ),
        files=job.files,
        truth=_slow(Cause.DATA_LOADING, culprit),
    )


def _profiles_alike(draw: Draw) -> Case:
    job, _ = _profiled(draw, 0.002)
    return Case(scenario="Profiles of four ranks, alike to 2 ms a step.", files=job.files, truth=HEALTHY)


def _in_turn(draw: Draw) -> Case:
    job = _moving(draw, 8, lambda rank, step: _LATE_S if step % 8 == rank else 0.0)
    return Case(
        scenario="Eight ranks. In each step another rank comes 0.4 s late to the all_reduce, each in its turn.",
        files=job.files,
        truth=_slow(Cause.ROTATING),
    )


def _same_every_time(draw: Draw) -> Case:
    world = draw.world(8, 32)
    culprit = draw.rank(range(world))
    return Case(
        scenario=f"In each step rank {culprit} comes 0.4 s late to the all_reduce. Nothing was seen but recorders.",
        files=_moving(draw, world, _always(culprit)).files,
        truth=_slow(None, culprit),
    )


def _with_series(job: Job, hot: int | None, *, clock_mhz: int, reasons: int) -> None:
    for rank in job.ranks:
        is_hot = rank == hot
        figures = {"sm_clock_mhz": clock_mhz if is_hot else 1965, "temperature_c": 87 if is_hot else 64}
        job.gpu(rank, util=99, power_w=160 if is_hot else 590, mem_util=40, clock_reasons=reasons if is_hot else 0x4, **figures)


def _throttled(draw: Draw) -> Case:
    world = draw.world(4, 16)
    culprit = draw.rank(range(world))
    job = _moving(draw, world, _always(culprit))
    _with_series(job, culprit, clock_mhz=draw.number(375, 480), reasons=0x24)
    return Case(
        scenario=(
            f"Rank {culprit} comes 0.4 s late in each step. Its GPU runs at less than 500 MHz at 87 C, with the software-"
            "thermal bit in every sample; those of the others at 1965 MHz."
        ),
        files=job.files,
        truth=_slow(Cause.THERMAL, culprit),
    )


def _throttled_series_alone(draw: Draw) -> Case:
    job = Job(draw, 2)
    _with_series(job, 1, clock_mhz=draw.number(375, 480), reasons=0x24)
    return Case(
        scenario=(
            "Two GPUs of one job. That of rank 1 runs at less than 500 MHz at 87 C, with the software-thermal bit in every "
            "sample, that of rank 0 at 1965 MHz."
        ),
        files=job.files,
        truth=_slow(Cause.THERMAL, 1),
    )


def _power_cap_everywhere(draw: Draw) -> Case:
    job = _moving(draw, 8, lambda *_: 0.0)
    _with_series(job, None, clock_mhz=1965, reasons=0x4)
    return Case(
        scenario="Eight GPUs, all with the bit of the power cap in every sample, all at 1965 MHz. No rank comes late.",
        files=job.files,
        truth=HEALTHY,
    )


def _spikes(draw: Draw) -> Case:
    late = [draw.rank(range(8)) for _ in range(_STEPS)]
    job = _moving(draw, 8, lambda rank, step: _LATE_S if late[step] == rank else 0.0)
    return Case(
        scenario="Eight ranks collect garbage, each at steps of its own: whoever does comes 0.4 s late to the all_reduce.",
        files=job.files,
        truth=_slow(Cause.ROTATING, acceptable=(Answer(kind=None),)),
    )


def _small_spikes(draw: Draw) -> Case:
    late = [draw.rank(range(8)) for _ in range(_STEPS)]
    job = _moving(draw, 8, lambda rank, step: 0.02 if late[step] == rank else 0.0)
    return Case(scenario="Eight ranks; in each step one of them is 20 ms late.", files=job.files, truth=HEALTHY)


def _all_vary(draw: Draw) -> Case:
    lengths = [draw.number(0, 15) / 10 for _ in range(_STEPS)]
    job = _moving(draw, draw.world(4, 16), lambda _, step: lengths[step])
    return Case(
        scenario="Steps take between 0.5 and 2 s by the length of their batches, on all ranks alike.",
        files=job.files,
        truth=HEALTHY,
    )


def _one_varies_more(draw: Draw) -> Case:
    lengths = [draw.number(0, 15) / 10 for _ in range(_STEPS)]
    world = draw.world(4, 16)
    culprit = draw.rank(range(world))
    job = _moving(draw, world, lambda rank, step: lengths[step] + (_LATE_S if rank == culprit else 0.0))
    return Case(
        scenario=f"Steps take between 0.5 and 2 s by their batches; rank {culprit} needs 0.4 s more in each.",
        files=job.files,
        truth=_slow(None, culprit),
    )


def _staged(draw: Draw, *late: int) -> Job:
    """Eight stages of four ranks."""
    job = Job(draw, 32)
    pipelines = [job.group("PIPELINE_MODEL_PARALLEL_GROUP", range(place, 32, 4)) for place in range(4)]
    stages = [job.group("TENSOR_MODEL_PARALLEL_GROUP", range(4 * stage, 4 * stage + 4)) for stage in range(8)]
    for group in (*pipelines, *stages):
        job.issue(Op.ALL_REDUCE, group=group)
    for _ in range(_STEPS):
        job.meet(Op.ALL_REDUCE, {rank: _STEP_S + (_LATE_S if rank in late else 0.0) for rank in job.ranks})
    return job


def _last_stage(draw: Draw) -> Case:
    return Case(
        scenario=(
            "Eight pipeline stages of four ranks each. The four ranks of the last stage, which has the output head, come 0.4 s "
            "late to the all_reduce in each step."
        ),
        files=_staged(draw, 28, 29, 30, 31).files,
        truth=_slow(Cause.PIPELINE_STAGE),
    )


def _one_of_last_stage(draw: Draw) -> Case:
    culprit = draw.number(28, 31)
    return Case(
        scenario=f"Eight pipeline stages of four ranks each. In each step rank {culprit}, of the last one, comes 0.4 s late.",
        files=_staged(draw, culprit).files,
        truth=_slow(None, culprit),
    )


def _with_quota(job: Job, *ranks: int) -> None:
    for rank in job.ranks:
        for sample in (0, 1):
            job.see(rank, sample, state="R", throttled_s=40.0 + sample * (3.5 if rank in ranks else 0.0))


def _quota(draw: Draw) -> Case:
    job = _moving(draw, 8, _always(2, 3), per_host=2)
    _with_quota(job, 2, 3)
    return Case(
        scenario=(
            "Four hosts of two ranks. Ranks 2 and 3 come 0.4 s late in each step; the cgroup of their host was throttled for "
            "3.5 s between two looks, the others' not at all."
        ),
        files=job.files,
        truth=_slow(Cause.CPU_CONTENTION, hosts=(job.host(2),)),
    )


def _quota_everywhere(draw: Draw) -> Case:
    job = _moving(draw, 8, lambda *_: 0.0, per_host=2)
    _with_quota(job, *job.ranks)
    return Case(
        scenario="Four hosts, whose cgroups are all throttled for 3.5 s between two looks. No rank comes late.",
        files=job.files,
        truth=Truth(kind=None, status=Status.HEALTHY, acceptable=(Answer(kind=None),)),
    )


def _with_retries(job: Job, *ranks: int) -> None:
    for rank in job.ranks:
        job.nccl_comm(rank, "Init COMPLETE")
        for count in (3, 9, 17) if rank in ranks else ():
            job.log(rank, f"[rank{rank}]:2026-11-29 14:00:{count:02} - WARNING - {count} CUDA memory allocation retries.\n")


def _retries(draw: Draw) -> Case:
    world = draw.world(4, 16)
    culprit = draw.rank(range(world))
    job = _moving(draw, world, _always(culprit))
    _with_retries(job, culprit)
    return Case(
        scenario=(
            f"Rank {culprit} comes 0.4 s late in each step. Its trainer writes of 3, 9 and 17 allocation retries; those of the "
            "others write of none."
        ),
        files=job.files,
        truth=_slow(Cause.ALLOCATOR, culprit),
    )


def _retries_in_logs_alone(draw: Draw) -> Case:
    job = Job(draw, 4)
    culprit = draw.rank(job.ranks)
    _with_retries(job, culprit)
    return Case(
        scenario=f"Logs of four ranks. Rank {culprit} writes of 3, 9 and 17 allocation retries, the others of none.",
        files=job.files,
        truth=_slow(Cause.ALLOCATOR, culprit, acceptable=(Answer(kind=None),)),
    )


def _retries_everywhere(draw: Draw) -> Case:
    job = _moving(draw, 4, lambda *_: 0.0)
    _with_retries(job, *job.ranks)
    return Case(
        scenario="Four ranks, all of which write of 3, 9 and 17 allocation retries. No rank comes late.",
        files=job.files,
        truth=HEALTHY,
    )


_GPU, _RECORDER = CollectorName.GPU, CollectorName.FLIGHT_RECORDER
FAMILIES = (
    Family(
        number="C76",
        title="who waits for data has the shortest backward",
        variants=(reported(_delay_before_backward, _GPU), near_miss(_profiles_alike)),
    ),
    Family(
        number="C77",
        title="another rank is late in each step",
        variants=(reported(_in_turn, _RECORDER), near_miss(_same_every_time, _RECORDER)),
    ),
    Family(
        number="C79",
        title="a GPU that is too hot",
        variants=(reported(_throttled, _RECORDER), near_miss(_power_cap_everywhere), less_seen(_throttled_series_alone, _GPU)),
    ),
    Family(
        number="C80",
        title="garbage is collected at different times",
        variants=(reported(_spikes, _RECORDER), near_miss(_small_spikes)),
    ),
    Family(
        number="C82",
        title="all ranks vary together",
        variants=(reported(_all_vary), near_miss(_one_varies_more, _RECORDER)),
    ),
    Family(
        number="C83",
        title="the last pipeline stage has more to do",
        variants=(reported(_last_stage, _RECORDER), near_miss(_one_of_last_stage, _RECORDER)),
    ),
    Family(
        number="C85",
        title="a quota of processor time",
        variants=(reported(_quota, _RECORDER), near_miss(_quota_everywhere)),
    ),
    Family(
        number="C86",
        title="the allocator retries",
        variants=(reported(_retries, _RECORDER), near_miss(_retries_everywhere), less_seen(_retries_in_logs_alone)),
    ),
)
