"""Ports that went down beside an operation that nobody finishes: a host only where the graph has nobody else. Near misses."""

import pytest

from pardbg.collectors.parsing.kernel_log import parse_kernel_log
from pardbg.watchdog.judge.judge import Circumstances, judge
from pardbg.watchdog.model.evidence import Evidence
from pardbg.watchdog.model.names import Cause, CollectorName, Confidence, Kind
from pardbg.watchdog.model.report import Report
from pardbg.watchdog.store.view import EvidenceView
from tests.collectors.dumps import outstanding
from tests.diagnosis.diagnosing import WHEN
from tests.diagnosis.test_hand_made import evidence_from
from tests.diagnosis.test_kernel_xids import ABSENT, ALL_IN, LONG_BEFORE, NEAR, job

HOSTS = {0: "h1", 1: "h1", 2: "h2", 3: "h2"}
DOWN, UP = "infiniband mlx5_1: port 1 link down", "infiniband mlx5_1: port 1 link up"


def report_of(
    logs: dict[str, str], *, rings: dict[int, list[dict[str, object]]] | None = None, is_one_host: bool = False
) -> Report:
    described = job() if is_one_host else job(hosts=HOSTS)
    read = [
        Evidence(
            source=CollectorName.KERNEL_LOG,
            rank=None,
            host=host,
            observation=parse_kernel_log(text),
            origin=f"kernel_{host}.log",
        )
        for host, text in logs.items()
    ]
    return judge(EvidenceView.of([*evidence_from(rings or ALL_IN), described, *read]), Circumstances(decided_at=WHEN))


def told(report: Report) -> tuple[Kind | None, Cause | None, list[str | None]]:
    verdict = report.verdict
    return (verdict.kind, verdict.cause, [subject.host for subject in verdict.culprits]) if verdict else (None, None, [])


@pytest.mark.parametrize(
    ("logs", "cause", "hosts"),
    [
        ({"h2": f"{NEAR} h2 kernel: {DOWN}\n"}, Cause.NETWORK, ["h2"]),
        ({"h2": f"{NEAR} h2 kernel: {DOWN}\n{NEAR} h2 kernel: {UP}\n"}, Cause.NETWORK, ["h2"]),  # connections do not survive
        ({"h2": f"[5.0] {DOWN}\n"}, Cause.NETWORK, ["h2"]),
        ({"h1": f"{NEAR} h1 kernel: {DOWN}\n", "h2": f"{NEAR} h2 kernel: {DOWN}\n"}, Cause.NETWORK, []),  # a switch
        ({"h2": f"[5.0] {DOWN}\n[6.0] {UP}\n"}, None, []),  # up again, and nobody knows when
        ({"h2": f"{LONG_BEFORE} h2 kernel: {DOWN}\n"}, None, []),  # the job went on without it
        ({"h2": f"{NEAR} h2 kernel: ixgbe 0000:19:00.0 eno1: NIC Link is Down\n"}, None, []),  # not what ranks talk over
        ({"h3": f"{NEAR} h3 kernel: {DOWN}\n"}, None, []),
        ({}, None, []),
    ],
)
def test_a_port_that_went_down_explains_an_operation_across_hosts(
    logs: dict[str, str], cause: Cause | None, hosts: list[str]
) -> None:
    assert told(report_of(logs)) == (Kind.COMM_STUCK, cause, hosts)


def test_the_port_is_named_in_the_claim() -> None:
    report = report_of({"h2": f"{NEAR} h2 kernel: {DOWN}\n"})
    assert report.verdict is not None
    assert report.verdict.claim.endswith(
        "; the kernel log of h2 tells of mlx5_1 port 1 (InfiniBand) went down at 2023-11-14 22:13:21 UTC"
    )


def test_a_port_that_need_not_be_the_ranks_is_a_weak_sign() -> None:
    other = report_of({"h2": f"{NEAR} h2 kernel: mlx5_core 0000:3b:00.0: Port: 1 Link DOWN\n"})
    confidences = [report_of({"h2": f"{NEAR} h2 kernel: {DOWN}\n"}).verdict, other.verdict]
    assert [verdict.confidence for verdict in confidences if verdict] == [Confidence.SUPPORTED, Confidence.SUGGESTED]


def test_a_port_that_went_down_before_the_first_operation_is_no_matter_of_setting_up() -> None:
    first = {rank: [outstanding(0)] for rank in range(4)}
    assert told(report_of({}, rings=first))[0] is Kind.INIT_STUCK
    assert told(report_of({"h2": f"{NEAR} h2 kernel: {DOWN}\n"}, rings=first)) == (Kind.COMM_STUCK, Cause.NETWORK, ["h2"])


def test_ranks_of_one_host_do_not_need_its_ports() -> None:
    assert told(report_of({"h1": f"{NEAR} h1 kernel: {DOWN}\n"}, is_one_host=True)) == (Kind.COMM_STUCK, None, [])


def test_a_port_that_went_down_does_not_excuse_a_rank_that_is_missing() -> None:
    report = report_of({"h1": f"{NEAR} h1 kernel: {DOWN}\n"}, rings=ABSENT)
    assert report.verdict is not None
    assert (report.verdict.kind, [subject.rank for subject in report.verdict.culprits]) == (Kind.MISSING_PARTICIPANT, [3])
