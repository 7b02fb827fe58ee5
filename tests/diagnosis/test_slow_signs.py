"""Why a rank is slow: by its GPU, its quota or its allocator; and what all show, which makes nobody slow (C79, C85, C86)."""

import json
from collections.abc import Iterable

import pytest

from pardbg.collectors.parsing.recognise import parse_file
from pardbg.collectors.procfs.cpu_group import parse_throttled_s, throttle_file
from pardbg.collectors.procfs.mounts import parse_mounts
from pardbg.watchdog.judge.judge import Circumstances, judge
from pardbg.watchdog.model.evidence import Evidence, FlightRecording, JobDescription, Observation, RankDescription
from pardbg.watchdog.model.heartbeat import Heartbeat
from pardbg.watchdog.model.names import Cause, CollectorName, Kind, Scope, Status
from pardbg.watchdog.model.process import ProcessSample
from pardbg.watchdog.model.report import Report
from pardbg.watchdog.sim.casebook.lines import nccl_comm
from pardbg.watchdog.store.view import EvidenceView
from tests.diagnosis.test_stragglers import TWO_HOSTS, WORLD, Lateness, always, play

COOL: dict[str, float] = {"sm_clock_mhz": 1980, "temperature_c": 62, "clock_reasons": 0x4, "power_w": 560}
HOT: dict[str, float] = {"sm_clock_mhz": 435, "temperature_c": 87, "clock_reasons": 0x24, "power_w": 150}


def gpus(*kinds: dict[str, float], util: int = 98) -> list[Evidence]:
    """A series of a minute for each rank, as its file tells it."""
    found = []
    for rank, kind in enumerate(kinds):
        points = ({"t": second, "rank": rank, "util": util, "power_limit_w": 700, **kind} for second in range(60))
        parsed = parse_file("gpu.jsonl", b"".join(json.dumps(point).encode() + b"\n" for point in points))
        found += [evidence(CollectorName.GPU, rank, item.observation) for item in parsed.found]
    return found


def evidence(source: CollectorName, rank: int | None, observation: Observation) -> Evidence:
    """One fact."""
    return Evidence(source=source, rank=rank, observation=observation, origin=f"{source.value}_{rank}")


def steps(lateness: Lateness) -> list[Evidence]:
    """What the recorders of eight ranks tell."""
    recordings = enumerate(play(WORLD, ["0"], lateness))
    return [evidence(CollectorName.FLIGHT_RECORDER, rank, FlightRecording(recording=one)) for rank, one in recordings]


def quotas(*grown_s: float) -> list[Evidence]:
    """Two looks at each rank; by how much the time without a processor grew."""
    return [
        evidence(
            CollectorName.HOST,
            rank,
            ProcessSample(sample=sample, pid=100 + rank, started_ticks=1, state="R", throttled_s=7.0 + sample * grown),
        )
        for rank, grown in enumerate(grown_s)
        for sample in (0, 1)
    ]


def retries(*grown: int) -> list[Evidence]:
    """Two heartbeats of each rank."""
    return [
        evidence(CollectorName.HOST, rank, Heartbeat(sample=sample, step=sample, retry_count=5 + sample * count))
        for rank, count in enumerate(grown)
        for sample in (0, 1)
    ]


def logged(*counts: tuple[int, ...]) -> list[Evidence]:
    """What trainers write of their allocators."""
    found = []
    for rank, written in enumerate(counts):
        lines = (
            f"[rank{rank}]:2026-11-30 10:00:0{at} - WARNING - {count} CUDA memory allocation retries.\n"
            for at, count in enumerate(written)
        )
        text = f"[rank{rank}]: {nccl_comm('a', 100 + rank, rank, 4, 'Init COMPLETE')}" + "".join(lines)
        found += [
            evidence(CollectorName.RANK_LOG, item.rank, item.observation) for item in parse_file("job.log", text.encode()).found
        ]
    return found


def report_on(evidences: Iterable[Evidence], world: int) -> Report:
    """The judge's answer on ranks of two hosts, half of them on each."""
    ranks = tuple(RankDescription(rank=rank, host="ab"[2 * rank // world]) for rank in range(world))
    job = evidence(CollectorName.HOST, None, JobDescription(job="slow", world_size=world, ranks=ranks))
    return judge(EvidenceView.of([job, *evidences]), Circumstances(decided_at="2026-11-30T00:00:00Z"))


@pytest.mark.parametrize(
    ("kind", "cause"),
    [
        pytest.param(HOT, Cause.THERMAL, id="C79"),
        pytest.param({**HOT, "clock_reasons": 0x40}, Cause.THERMAL, id="hardware"),
        pytest.param({**HOT, "clock_reasons": 0x88, "temperature_c": 55}, Cause.POWER, id="brake"),
        pytest.param({**COOL, "sm_clock_mhz": 900, "power_limit_w": 250, "power_w": 250}, Cause.POWER, id="low-limit"),
    ],
)
def test_gpu_whose_clock_is_held_down_far_below_its_peers_is_named(kind: dict[str, float], cause: Cause) -> None:
    for series in (gpus(COOL, kind), gpus(COOL, kind, COOL, COOL)):
        report = report_on(series, len(series))
        (found,) = report.findings

        assert (found.kind, found.cause, report.status) == (Kind.STRAGGLER, cause, Status.SLOW)
        assert [(subject.scope, subject.rank) for subject in found.culprits] == [(Scope.DEVICE, 1)]
        assert "MHz where its peers run at 1980" in found.evidence[0].text


@pytest.mark.parametrize(
    "series",
    [
        pytest.param(gpus(COOL, COOL, COOL, COOL), id="all-at-their-power-cap"),
        pytest.param(gpus(HOT, HOT, HOT, HOT), id="all-hot"),
        pytest.param(gpus(COOL, {**HOT, "sm_clock_mhz": 1900}, COOL, COOL), id="hot-and-as-fast"),
        pytest.param(gpus(COOL, {**HOT, "clock_reasons": 0}, COOL, COOL), id="slow-without-a-reason"),
        pytest.param(gpus(COOL, COOL)[:1] + gpus(COOL, {**HOT, "clock_reasons": 0x1}, util=0)[1:], id="idle"),
        pytest.param(gpus(COOL, {**COOL, "sm_clock_mhz": 1400}, {**COOL, "clock_reasons": 0}, COOL), id="works-hardest"),
        pytest.param(gpus(HOT), id="alone"),
    ],
)
def test_clocks_that_all_have_or_that_nothing_holds_down_accuse_nobody(series: list[Evidence]) -> None:
    assert report_on(series, len(series)).findings == ()


def test_hot_gpu_is_why_its_rank_is_late() -> None:
    kinds = [HOT if rank == 5 else COOL for rank in range(8)]
    (found,) = report_on([*steps(always(5)), *gpus(*kinds)], 8).findings

    assert found.cause is Cause.THERMAL
    assert [(subject.scope, subject.rank) for subject in found.culprits] == [(Scope.DEVICE, 5)]
    assert found.cost is not None


def test_hot_gpu_of_a_rank_that_is_not_late_is_no_reason() -> None:
    kinds = [HOT if rank == 2 else COOL for rank in range(8)]
    (late,) = report_on([*steps(always(5)), *gpus(*kinds)], 8).findings

    assert (late.cause, [subject.rank for subject in late.culprits]) == (None, [5])
    assert report_on([*steps(lambda *_: 0.0), *gpus(*kinds)], 8).findings == ()


def test_host_whose_quota_is_used_up_is_named_as_a_whole() -> None:
    (found,) = report_on(quotas(0.0, 0.01, 3.1, 3.1), 4).findings

    assert (found.kind, found.cause) == (Kind.STRAGGLER, Cause.CPU_CONTENTION)
    assert [(subject.scope, subject.host, subject.ranks) for subject in found.culprits] == [(Scope.HOST, "b", (2, 3))]


def test_quota_is_why_all_ranks_of_a_host_are_late() -> None:
    assert len(TWO_HOSTS) == 8
    grown = [2.0 if rank in (6, 7) else 0.0 for rank in range(8)]
    causes = {found.cause for found in report_on([*steps(always(6, 7)), *quotas(*grown)], 8).findings}

    assert causes == {Cause.CPU_CONTENTION}


@pytest.mark.parametrize("grown", [(3.0, 3.0, 3.0, 3.0), (0.0, 0.0, 0.0, 0.1), (3.0, 1.0, 1.0, 0.5), (0.0, 0.0, 0.0, 0.0)])
def test_quotas_that_all_use_up_or_nobody_accuse_nobody(grown: tuple[float, ...]) -> None:
    assert report_on(quotas(*grown), 4).findings == ()


@pytest.mark.parametrize("seen", [retries(0, 0, 9, 0), logged((), (), (2, 9), ())])
def test_rank_whose_allocator_retries_more_and_more_is_named(seen: list[Evidence]) -> None:
    (found,) = report_on(seen, 4).findings

    assert (found.kind, found.cause, found.confidence.value) == (Kind.STRAGGLER, Cause.ALLOCATOR, "suggested")
    assert [subject.rank for subject in found.culprits] == [2]


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param(retries(9, 8, 9, 7), id="all"),
        pytest.param(logged((2, 9), (2, 8), (1, 9), (3, 9)), id="all-by-logs"),
        pytest.param(logged((), (), (9,), ()), id="not-rising"),
        pytest.param(logged((), (), (2, 9))[-1:], id="others-unseen"),
    ],
)
def test_memory_that_is_short_everywhere_or_long_ago_accuses_nobody(seen: list[Evidence]) -> None:
    assert report_on(seen, 4).findings == ()


def test_counter_of_a_quota_is_found_and_read_in_both_versions_of_control_groups() -> None:
    second = list(parse_mounts("30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"))
    first = list(parse_mounts("30 23 0:26 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"))

    assert throttle_file("0::/pod/one\n", second) == "/sys/fs/cgroup/pod/one/cpu.stat"
    assert throttle_file("4:cpu,cpuacct:/pod\n0::/\n", first) == "/sys/fs/cgroup/cpu,cpuacct/pod/cpu.stat"
    assert parse_throttled_s("usage_usec 5\nnr_throttled 3\nthrottled_usec 1500000\n") == 1.5
    assert parse_throttled_s("nr_periods 1\nnr_throttled 3\nthrottled_time 2500000000\n") == 2.5
    assert parse_throttled_s("usage_usec 5\n") is None
