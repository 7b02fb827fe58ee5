"""What GPUs show decides: errors of the driver, and the odd one among those that should do alike. Rules with near misses."""

from collections.abc import Iterable, Mapping

import pytest
from msgspec.structs import replace

from pardbg.watchdog.judge.judge import Circumstances, judge
from pardbg.watchdog.model.device import DeviceJoin, DeviceSeen, DeviceShape, XidSeen
from pardbg.watchdog.model.evidence import Evidence, JobDescription, RankDescription, Stack, Thread
from pardbg.watchdog.model.names import Cause, CollectorName, Kind, Scope, Status
from pardbg.watchdog.model.report import Report
from pardbg.watchdog.store.view import EvidenceView
from tests.collectors.dumps import Entry, make_entry, outstanding
from tests.diagnosis.diagnosing import WHEN
from tests.diagnosis.live_evidence import LiveJob, frame, job_of, sleeps, waits
from tests.diagnosis.test_hand_made import evidence_from

NOW_NS = 1_796_000_000_000_000_000  # `SAMPLED_AT`
SAMPLED_AT = "2026-11-30T00:53:20Z"
SPINS = DeviceSeen(
    shape=DeviceShape.SPINNING, shape_s=118.0, util=100.0, mem_util=0.0, power_w=130.0, power_limit_w=700.0, index=0
)
IDLES = DeviceSeen(shape=DeviceShape.IDLE, shape_s=118.0, util=0.0, mem_util=0.0, power_w=71.0, power_limit_w=700.0, index=0)
WORKS = DeviceSeen(shape=DeviceShape.BUSY, shape_s=118.0, util=99.0, mem_util=40.0, power_w=612.0, index=0)
LOST = DeviceSeen(shape=DeviceShape.LOST, problem="GPU is lost", index=3, pci_bus_id="00000000:3B:00.0", uuid="GPU-3")
ALL_IN = {rank: [make_entry(0), outstanding(1)] for rank in range(4)}
LEFT_BEHIND = {rank: [make_entry(0), make_entry(1), outstanding(2)] for rank in range(4)} | {3: [make_entry(0), outstanding(1)]}
ABSENT = ALL_IN | {3: [make_entry(0)]}


def xid(code: int, before_s: float = 60.0, seen: DeviceSeen = SPINS) -> DeviceSeen:
    """A GPU with an error so long before the evidence was taken."""
    return replace(seen, xids=(XidSeen(code=code, at_ns=NOW_NS - int(before_s * 1e9)),))


def devices(seen: Mapping[int, DeviceSeen], *, host: str = "h1") -> Iterable[Evidence]:
    for rank, device in seen.items():
        yield Evidence(source=CollectorName.GPU, rank=rank, host=host, observation=device, origin="NVML")


def report_of(rings: Mapping[int, Iterable[Entry]], *seen: DeviceSeen | None, more: Iterable[Evidence] = ()) -> Report:
    """Four ranks with these rings and GPUs, on one host."""
    ranks = tuple(RankDescription(rank=rank, host="h1", pid=100 + rank) for rank in range(4))
    job = JobDescription(job="j", world_size=4, ranks=ranks, sampled_at=SAMPLED_AT)
    described = Evidence(source=CollectorName.HOST, rank=None, observation=job, origin="job.json")
    known = {rank: device for rank, device in enumerate(seen) if device is not None}
    evidence = [*evidence_from(rings), described, *devices(known), *more]
    return judge(EvidenceView.of(evidence), Circumstances(decided_at=WHEN))


def told(report: Report) -> tuple[Kind | None, Cause | None, set[int | None]]:
    verdict = report.verdict
    return (verdict.kind, verdict.cause, {subject.rank for subject in verdict.culprits}) if verdict else (None, None, set())


@pytest.mark.parametrize(
    ("device", "cause"),
    [
        (SPINS, None),
        (LOST, Cause.GPU_LOST),
        (xid(79), Cause.GPU_LOST),
        (xid(94), Cause.ECC),
        (replace(SPINS, new_ecc_uncorrected=2), Cause.ECC),
        (xid(74), Cause.NVLINK),
        (replace(SPINS, down_links=(4,)), Cause.NVLINK),
        (xid(119), Cause.XID),
        (xid(45), None),  # cleans up after another error
        (xid(119, before_s=3600.0), None),  # the job went on after it
        (replace(SPINS, ecc_uncorrected=2, new_ecc_uncorrected=0), None),  # of earlier days
        (replace(xid(119), is_shared=True), None),  # may be another MIG instance's
        (replace(xid(119), joined_by=DeviceJoin.LOCAL_RANK), None),  # may be another rank's
    ],
)
def test_a_device_that_has_not_finished_what_others_have_is_explained_by_its_errors(
    device: DeviceSeen, cause: Cause | None
) -> None:
    rings = {
        rank: [{**entry, "time_created_ns": NOW_NS - 300_000_000_000} for entry in ring] for rank, ring in LEFT_BEHIND.items()
    }
    report = report_of(rings, SPINS, SPINS, SPINS, device)

    assert told(report) == (Kind.DEVICE_STUCK, cause, {3})
    assert [finding.kind for finding in report.findings] == [Kind.DEVICE_STUCK]


def test_the_worst_error_counts_where_neighbours_report_what_follows_from_it() -> None:
    assert told(report_of(ALL_IN, xid(74), xid(45), SPINS, LOST)) == (Kind.DEVICE_STUCK, Cause.GPU_LOST, {3})


def test_the_one_gpu_that_idles_where_all_others_spin_was_never_given_the_kernel() -> None:
    report = report_of(ALL_IN, SPINS, SPINS, SPINS, replace(IDLES, index=3, uuid="GPU-3", pci_bus_id="00000000:3B:00.0"))

    assert told(report) == (Kind.DEVICE_STUCK, None, {3})
    verdict = report.verdict
    assert verdict is not None
    assert verdict.culprits[0].device is not None
    assert (verdict.culprits[0].device.uuid, verdict.victims, report.status) == ("GPU-3", (0, 1, 2), Status.HUNG)
    assert verdict.claim.startswith(
        "GPU 3 (00000000:3B:00.0) of rank 3 on h1 idles, while those of all others spin in what its rank has entered, too; "
        "3 ranks wait in all_reduce 2 of the default_pg group [0-3]"
    )
    lines = [line.text for line in verdict.evidence if line.source is CollectorName.GPU]
    assert lines == [
        "GPU 3 (00000000:3B:00.0) idles for 118 s: 0 % busy, 71 of 700 W",
        "the GPU of 3 ranks spins in a kernel that computes nothing at 130 W",
    ]


def test_the_one_gpu_that_works_on_while_all_others_spin_runs_a_kernel_that_does_not_end() -> None:
    assert told(report_of(ALL_IN, SPINS, SPINS, SPINS, WORKS)) == (Kind.DEVICE_STUCK, Cause.GPU_KERNEL, {3})


@pytest.mark.parametrize(
    "seen",
    [
        (SPINS, SPINS, SPINS, SPINS),
        (SPINS, SPINS, IDLES, IDLES),  # no majority
        (IDLES, IDLES, IDLES, SPINS),
        (SPINS, SPINS, SPINS, None),  # not seen
        (SPINS, SPINS, SPINS, replace(IDLES, shape=DeviceShape.VARYING)),
        (SPINS, SPINS, SPINS, replace(IDLES, joined_by=DeviceJoin.LOCAL_RANK)),
        (SPINS, SPINS, SPINS, replace(IDLES, is_shared=True)),
        (),
    ],
)
def test_without_a_clear_odd_one_nobody_is_to_blame(seen: tuple[DeviceSeen | None, ...]) -> None:
    assert told(report_of(ALL_IN, *seen)) == (Kind.COMM_STUCK, None, set())


def test_a_gpu_that_changed_between_the_samples_is_no_odd_one() -> None:
    before = devices({3: replace(WORKS, sample=0)})
    after = replace(IDLES, sample=1)
    assert told(report_of(ALL_IN, SPINS, SPINS, SPINS, after, more=before)) == (Kind.COMM_STUCK, None, set())


def test_links_of_two_gpus_are_a_link_and_of_one_a_gpu() -> None:
    broken = replace(SPINS, down_links=(7,))
    report = report_of(ALL_IN, SPINS, broken, broken, SPINS)
    assert told(report)[:2] == (Kind.COMM_STUCK, Cause.NVLINK)
    assert report.verdict is not None
    (link,) = report.verdict.culprits
    assert (link.scope, link.ranks, link.hosts, link.rank) == (Scope.LINK, (1, 2), ("h1",), None)

    assert told(report_of(ALL_IN, SPINS, broken, SPINS, SPINS)) == (Kind.DEVICE_STUCK, Cause.NVLINK, {1})

    switch = report_of(ALL_IN, broken, broken, broken, SPINS)
    assert switch.verdict is not None
    assert [(subject.scope, subject.host) for subject in switch.verdict.culprits] == [(Scope.HOST, "h1")]


def test_a_rank_that_is_missing_and_whose_gpu_is_lost_is_stuck_on_it() -> None:
    assert told(report_of(ABSENT, SPINS, SPINS, SPINS, LOST)) == (Kind.DEVICE_STUCK, Cause.GPU_LOST, {3})
    assert told(report_of(ABSENT, SPINS, SPINS, SPINS, IDLES)) == (Kind.MISSING_PARTICIPANT, None, {3})


def synchronizing(rank: int = 3) -> Evidence:
    inner = frame("synchronize", 985, "/opt/venv/lib/python3.11/site-packages/torch/cuda/__init__.py")
    main = Thread(name="MainThread", is_active=True, owns_gil=False, frames=(inner, frame("train", 40)))
    return Evidence(source=CollectorName.STACKS, rank=rank, observation=Stack(pid=1, threads=(main,)), origin="py-spy")


def test_a_rank_that_waits_for_its_device_is_judged_by_what_the_device_does() -> None:
    stack = [synchronizing()]
    assert told(report_of(ABSENT, more=stack))[0] is Kind.INSUFFICIENT_EVIDENCE
    assert told(report_of(ABSENT, SPINS, SPINS, SPINS, WORKS, more=stack)) == (Kind.DEVICE_STUCK, Cause.GPU_KERNEL, {3})
    report = report_of(ABSENT, SPINS, SPINS, SPINS, IDLES, more=stack)
    assert told(report) == (Kind.DEVICE_STUCK, None, {3})
    assert report.verdict is not None
    assert "idles, while its rank waits for it to finish" in report.verdict.claim


def report_of_live(job: LiveJob, seen: Mapping[int, DeviceSeen]) -> Report:
    evidence = [*job.evidence(), *devices(seen)]
    return judge(EvidenceView.of(evidence), Circumstances(decided_at=WHEN, sampled_at=(WHEN, WHEN)))


def test_a_rank_that_its_own_stack_shows_elsewhere_is_not_excused_by_its_gpu() -> None:
    job = job_of(waits(), waits(), sleeps(), waits())
    report = report_of_live(job, {0: SPINS, 1: SPINS, 2: xid(119, seen=IDLES), 3: SPINS})

    assert told(report) == (Kind.MISSING_PARTICIPANT, Cause.SLEEPING, {2})
    assert report.verdict is not None
    lines = [(line.rank, line.text) for line in report.verdict.evidence if line.source is CollectorName.GPU]
    assert lines[0][0] == 2
    assert "idles for 118 s" in lines[0][1]
    assert "Xid 119 (its own processor (GSP) does not answer)" in lines[0][1]
    assert lines[1:] == [(0, "the GPU of 3 ranks spins in a kernel that computes nothing at 130 W")]
    assert report.coverage.by_collector["gpu"] == 4


def test_a_gpu_is_lost_under_a_job_that_only_stacks_show() -> None:
    report = report_of_live(job_of(waits(), waits(), waits(), waits()), {0: SPINS, 1: SPINS, 2: LOST, 3: SPINS})
    assert told(report) == (Kind.DEVICE_STUCK, Cause.GPU_LOST, {2})


def test_a_job_on_processors_says_nothing_of_gpus() -> None:
    report = job_of(waits(), waits(), sleeps(), waits()).report()
    assert "gpu" not in report.coverage.by_collector
    assert not [unknown for unknown in report.unknowns if unknown.collector is CollectorName.GPU]
