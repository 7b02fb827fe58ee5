"""What kernel logs say of GPUs: which error is the cause, whose GPU it is, and where it accuses nobody. Near misses beside."""

from collections.abc import Iterable, Mapping

import pytest
from msgspec.structs import replace

from pardbg.collectors.parsing.kernel_log import parse_kernel_log
from pardbg.watchdog.judge.judge import Circumstances, judge
from pardbg.watchdog.model.device import DeviceJoin, DeviceSeen, DeviceShape
from pardbg.watchdog.model.evidence import Absence, Evidence, JobDescription, RankDescription
from pardbg.watchdog.model.names import AbsenceReason, Cause, CollectorName, Confidence, Kind, Scope
from pardbg.watchdog.model.report import Report
from pardbg.watchdog.store.view import EvidenceView
from tests.collectors.dumps import Entry, make_entry, outstanding
from tests.diagnosis.diagnosing import WHEN
from tests.diagnosis.test_hand_made import evidence_from

WAITING_NS = 1_700_000_000_002_000_000  # when the outstanding entry was created: 2023-11-14 22:13:20 UTC
NEAR = "2023-11-14T22:13:21+00:00"
LONG_BEFORE = "2023-11-14T09:00:00+00:00"
ALL_IN = {rank: [make_entry(0), make_entry(1), outstanding(2)] for rank in range(4)}
LEFT_BEHIND = ALL_IN | {3: [make_entry(0), outstanding(1)]}
ABSENT = ALL_IN | {3: [make_entry(0), make_entry(1)]}


def xid(code: int, gpu: int = 3, at: str = NEAR, more: str = "") -> str:
    return f"{at} h1 kernel: NVRM: Xid (PCI:0000:{gpu:02x}:00): {code}{more}, pid=9, name=python3\n"


def job(*, host: str = "h1", has_pci: bool = True, has_pids: bool = True, hosts: Mapping[int, str] | None = None) -> Evidence:
    """Four ranks, whose GPUs have their ranks as bus numbers."""
    ranks = tuple(
        RankDescription(
            rank=rank,
            host=(hosts or {}).get(rank, host),
            pid=100 + rank if has_pids else None,
            pci_bus_id=f"00000000:{rank:02X}:00.0" if has_pci else None,
        )
        for rank in range(4)
    )
    description = JobDescription(job="j", world_size=4, ranks=ranks)
    return Evidence(source=CollectorName.HOST, rank=None, observation=description, origin="job.json")


def log(text: str, host: str | None = "h1") -> Evidence:
    return Evidence(
        source=CollectorName.KERNEL_LOG, rank=None, host=host, observation=parse_kernel_log(text), origin=f"kernel_{host}.log"
    )


def report_of(
    rings: Mapping[int, Iterable[Entry]], text: str, *more: Evidence, described: Evidence | None = None, host: str | None = "h1"
) -> Report:
    evidence = [*evidence_from(rings), described or job(), log(text, host), *more]
    return judge(EvidenceView.of(evidence), Circumstances(decided_at=WHEN))


def told(report: Report) -> tuple[Kind | None, Cause | None, set[int | None]]:
    verdict = report.verdict
    return (verdict.kind, verdict.cause, {subject.rank for subject in verdict.culprits}) if verdict else (None, None, set())


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (xid(79), Cause.GPU_LOST),
        (xid(48), Cause.ECC),
        (xid(64), Cause.ECC),
        (xid(94), Cause.ECC),
        (xid(95), Cause.ECC),
        (xid(74), Cause.NVLINK),
        (xid(149), Cause.NVLINK),
        (xid(119), Cause.XID),
        (xid(31), Cause.XID),
        (xid(45), None),  # a consequence
        (xid(63), None),  # put right
        (xid(149, more=", NETIR_LINK_EVT Nonfatal XC0"), None),  # a warning
        (xid(119, at=LONG_BEFORE), None),  # the job went on after it
        (xid(119, gpu=9), None),  # another job's GPU
        (xid(119, gpu=0), None),  # a victim's GPU
        ("", None),
    ],
)
def test_the_device_that_has_not_finished_what_others_have_is_explained_by_the_log(text: str, cause: Cause | None) -> None:
    report = report_of(LEFT_BEHIND, text)
    assert told(report) == (Kind.DEVICE_STUCK, cause, {3})
    assert [finding.kind for finding in report.findings] == [Kind.DEVICE_STUCK]


def test_the_gpu_that_the_log_accuses_where_all_wait_is_named_with_its_line() -> None:
    report = report_of(ALL_IN, xid(79))

    assert told(report) == (Kind.DEVICE_STUCK, Cause.GPU_LOST, {3})
    verdict = report.verdict
    assert verdict is not None
    assert verdict.confidence is Confidence.SUPPORTED
    assert verdict.culprits[0].device is not None
    assert verdict.culprits[0].device.pci_bus_id == "00000000:03:00.0"
    assert verdict.victims == (0, 1, 2)
    (line,) = [line for line in verdict.evidence if line.source is CollectorName.KERNEL_LOG]
    assert (line.host, line.at, line.origin) == ("h1", "2023-11-14T22:13:21Z", "kernel_h1.log")
    assert line.text == "Xid 79 (fallen off the bus) of its GPU at 2023-11-14 22:13:21 UTC"
    assert report.coverage.by_collector["kernel-log"] == 4


@pytest.mark.parametrize(
    ("text", "described"),
    [
        (xid(79, gpu=9), job()),  # of no rank, and all ranks' GPUs are known
        (xid(45), job()),
        (xid(149, more=", NETIR_LINK_EVT Nonfatal XC0"), job()),
        (xid(119, at=LONG_BEFORE), job()),
        (xid(79), job(hosts=dict.fromkeys(range(4), "h2"))),  # another host's
        ("", job()),
    ],
)
def test_without_an_error_that_matters_nobody_is_to_blame(text: str, described: Evidence) -> None:
    assert told(report_of(ALL_IN, text, described=described)) == (Kind.COMM_STUCK, None, set())


def test_a_program_error_of_a_gpu_is_only_a_sign() -> None:
    report = report_of(ALL_IN, xid(31))
    assert told(report) == (Kind.DEVICE_STUCK, Cause.XID, {3})
    assert report.verdict is not None
    assert report.verdict.confidence is Confidence.SUGGESTED


def test_an_error_at_a_victims_gpu_does_not_excuse_the_rank_that_is_missing() -> None:
    assert told(report_of(ABSENT, xid(79, gpu=0)))[2] == {3}
    assert told(report_of(ABSENT, xid(79, gpu=0)))[0] is Kind.MISSING_PARTICIPANT
    assert told(report_of(ABSENT, xid(79))) == (Kind.DEVICE_STUCK, Cause.GPU_LOST, {3})


def test_errors_that_may_follow_from_a_rank_that_was_not_seen_accuse_nobody() -> None:
    unseen = {rank: ring for rank, ring in ALL_IN.items() if rank != 3}
    assert told(report_of(unseen, xid(74, gpu=0))) == (Kind.INSUFFICIENT_EVIDENCE, None, set())
    assert told(report_of(unseen, xid(31, gpu=0))) == (Kind.INSUFFICIENT_EVIDENCE, None, set())
    assert told(report_of(unseen, xid(79, gpu=0))) == (Kind.DEVICE_STUCK, Cause.GPU_LOST, {0})
    assert told(report_of(unseen, xid(74, gpu=3))) == (Kind.DEVICE_STUCK, Cause.NVLINK, {3})


def test_the_error_where_a_links_trouble_began_counts_and_its_peers_report_consequences() -> None:
    peers = "".join(xid(145, gpu=gpu) + xid(45, gpu, more=", Ch 1 caused by previous Xid 145") for gpu in (0, 1, 2))
    assert told(report_of(ALL_IN, peers + xid(149, gpu=3))) == (Kind.DEVICE_STUCK, Cause.NVLINK, {3})


def test_a_clean_up_elsewhere_that_names_a_logged_error_as_its_cause_is_a_consequence() -> None:
    peers = "".join(xid(45, gpu, more=", Ch 1 caused by previous Xid 149") for gpu in (0, 1, 2))
    assert told(report_of(ALL_IN, xid(149, gpu=3) + peers)) == (Kind.DEVICE_STUCK, Cause.NVLINK, {3})


def test_an_error_whose_own_line_is_lost_is_known_by_what_follows_from_it() -> None:
    peers = "".join(xid(45, gpu, more=", Ch 1 caused by previous Xid 145") for gpu in (0, 1, 2))
    report = report_of(ALL_IN, peers + xid(45, gpu=3, more=", Ch 1 caused by previous Xid 149"))

    assert told(report) == (Kind.DEVICE_STUCK, Cause.NVLINK, {3})
    assert report.verdict is not None
    assert "has reported Xid 149 (NVLink error) by what later errors name as their cause" in report.verdict.claim
    assert any("its own line was not found" in line.text for line in report.verdict.evidence)


def test_equal_link_errors_of_two_gpus_are_the_link() -> None:
    report = report_of(ALL_IN, xid(145, gpu=1) + xid(145, gpu=2))
    assert told(report)[:2] == (Kind.COMM_STUCK, Cause.NVLINK)
    assert report.verdict is not None
    (link,) = report.verdict.culprits
    assert (link.scope, link.ranks) == (Scope.LINK, (1, 2))


def test_a_fatal_link_error_of_an_earlier_job_that_nobody_cleared_is_told() -> None:
    old = xid(145, gpu=1, at=LONG_BEFORE) + xid(145, gpu=2, at=LONG_BEFORE)
    report = report_of(ALL_IN, old)
    assert told(report)[:2] == (Kind.COMM_STUCK, Cause.NVLINK)
    assert report.verdict is not None
    assert [(subject.scope, subject.host) for subject in report.verdict.culprits] == [(Scope.HOST, "h1")]
    assert "the kernel log of h1 tells of Xid 145 (NVLink error) of GPU 0000:02:00 at 2023-11-14 09:00:00 UTC" in (
        report.verdict.claim
    )

    cleared = old + "2023-11-14T10:00:00+00:00 h1 kernel: NVRM: loading NVIDIA UNIX x86_64 Kernel Module  570.1\n"
    assert told(report_of(ALL_IN, cleared)) == (Kind.COMM_STUCK, None, set())


def test_where_no_ranks_gpu_is_known_the_host_is_named_and_no_rank() -> None:
    unknown = job(has_pci=False)
    report = report_of(ALL_IN, xid(79).replace("pid=9,", "pid='<unknown>',"), described=unknown)
    assert told(report) == (Kind.DEVICE_STUCK, Cause.GPU_LOST, {None})
    assert report.verdict is not None
    assert [(subject.scope, subject.host) for subject in report.verdict.culprits] == [(Scope.HOST, "h1")]
    assert report.verdict.confidence is Confidence.SUGGESTED

    doubtful = report_of(ALL_IN, xid(79), described=unknown)  # it names a process that is no rank's
    assert told(doubtful) == (Kind.DEVICE_STUCK, Cause.GPU_LOST, set())
    assert doubtful.verdict is not None
    assert [subject.host for subject in doubtful.verdict.candidates] == ["h1"]

    assert told(report_of(LEFT_BEHIND, xid(79), described=unknown)) == (Kind.DEVICE_STUCK, Cause.GPU_LOST, {3})
    assert told(report_of(ALL_IN, xid(79, at=LONG_BEFORE), described=unknown)) == (Kind.COMM_STUCK, None, set())


def test_a_process_that_the_driver_names_is_a_rank_only_by_the_hosts_numbers() -> None:
    unknown = job(has_pci=False)
    mine = xid(79).replace("pid=9,", "pid=102,")
    assert told(report_of(ALL_IN, mine, described=unknown)) == (Kind.DEVICE_STUCK, Cause.GPU_LOST, {2})
    assert told(report_of(ALL_IN, mine)) == (Kind.DEVICE_STUCK, Cause.GPU_LOST, {3})  # the address is surer


def test_a_gpu_that_is_only_guessed_to_be_a_ranks_accuses_nobody() -> None:
    guess = DeviceSeen(shape=DeviceShape.SPINNING, index=3, pci_bus_id="00000000:03:00.0", joined_by=DeviceJoin.LOCAL_RANK)
    seen = Evidence(source=CollectorName.GPU, rank=3, host="h1", observation=guess, origin="NVML")
    report = report_of(ALL_IN, xid(79), seen, described=job(has_pci=False))
    assert told(report) == (Kind.DEVICE_STUCK, Cause.GPU_LOST, set())
    sure = replace(seen, observation=replace(guess, joined_by=DeviceJoin.PID))
    assert told(report_of(ALL_IN, xid(79), sure, described=job(has_pci=False)))[2] == {3}


@pytest.mark.parametrize(("host", "rank"), [("h1.cluster.local", 3), ("h1_2023", 3), (None, 3), ("h10", None)])
def test_a_log_belongs_to_the_host_that_its_name_tells(host: str | None, rank: int | None) -> None:
    assert told(report_of(ALL_IN, xid(79), host=host))[2] == ({rank} if rank is not None else set())


def test_a_log_that_nobody_may_read_is_unknown_and_never_health() -> None:
    denied = Absence(reason=AbsenceReason.DENIED, detail="the kernel log is not readable (needs CAP_SYSLOG)")
    refused = Evidence(source=CollectorName.KERNEL_LOG, rank=None, host="h1", observation=denied, origin="/dev/kmsg")
    report = judge(EvidenceView.of([*evidence_from(ALL_IN), job(), refused]), Circumstances(decided_at=WHEN))
    assert told(report) == (Kind.COMM_STUCK, None, set())
    assert [unknown.reason for unknown in report.unknowns if unknown.collector is CollectorName.KERNEL_LOG] == [
        AbsenceReason.DENIED
    ]
    assert "kernel-log" not in report.coverage.by_collector
