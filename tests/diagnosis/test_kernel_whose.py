"""Whose a line of a kernel log is, where two ranks or two hosts could be meant. Each test holds a rule."""

import pytest

from pardbg.watchdog.model.device import XidSeen
from pardbg.watchdog.model.names import Cause, Kind
from pardbg.watchdog.store.kernel_events import KernelEvents, RankKnown, merge_xids, name_host
from tests.diagnosis.test_kernel_kills import kill
from tests.diagnosis.test_kernel_xids import ALL_IN, job, log, report_of, told, xid

PCI = "0000:03:00"
S = 1_000_000_000


def known(rank: int, host: str | None, pid: int = 100, pci: str | None = None) -> RankKnown:
    return RankKnown(rank, host, frozenset({pid}), pci)


def test_two_hosts_have_processes_of_one_number() -> None:
    ranks = (known(0, "h1"), known(1, "h2"))
    assert sorted(KernelEvents.of([log(kill(100), "h2")], ranks).kills) == [1]
    assert sorted(KernelEvents.of([log(xid(79).replace("pid=9,", "pid=100,"), "h2")], ranks).xids) == [1]


def test_a_log_of_nobody_knows_which_host_is_not_that_of_a_rank_of_nobody_knows_which_host() -> None:
    ranks = (known(0, None), known(1, "h1", 101), known(2, "h2", 102))
    assert KernelEvents.of([log(kill(100), None)], ranks).kills == {}


def test_an_address_that_two_ranks_share_leads_to_neither() -> None:
    shared = (known(0, "h1", 100, PCI), known(1, "h1", 101, PCI))
    assert KernelEvents.of([log(xid(79))], shared).xids == {}
    assert sorted(KernelEvents.of([log(xid(79))], shared[:1]).xids) == [0]


def test_only_what_is_fatal_and_of_no_known_gpu_is_unclaimed() -> None:
    ranks = (known(0, "h1", 100, PCI), known(1, "h1", 101))
    text = xid(79) + xid(79, gpu=4) + xid(149, gpu=5, more=", NETIR_LINK_EVT Nonfatal XC0")
    unclaimed = KernelEvents.of([log(text)], ranks).unclaimed
    assert [(host, event.pci) for host, events in unclaimed.items() for event in events] == [("h1", "0000:04:00")]

    by_number = KernelEvents.of([log(xid(79).replace("pid=9,", "pid=100,"))], (known(0, "h1"), known(1, "h1", 101)))
    shared = KernelEvents.of([log(xid(79))], (*ranks, known(2, "h1", 102, PCI)))
    assert (by_number.unclaimed, shared.unclaimed) == ({}, {})


@pytest.mark.parametrize(
    ("name", "hosts", "host"),
    [
        ("node7", ["node7.a", "node8.a"], "node7.a"),
        ("node7", ["node7.a", "node7.b"], None),
        ("node7-1-kern", ["node7", "node7-1"], "node7-1"),
        ("node70", ["node7"], None),
        (None, ["node7"], "node7"),
        (None, ["node7", "node8"], None),
    ],
)
def test_a_host_is_found_by_a_name_that_fits_one_alone(name: str | None, hosts: list[str], host: str | None) -> None:
    assert name_host(name, hosts) == host


@pytest.mark.parametrize(
    ("logged", "count"),
    [
        (XidSeen(code=79, at_ns=12 * S), 1),
        (XidSeen(code=79, at_ns=20 * S), 2),
        (XidSeen(code=79, at_ns=None), 1),
        (XidSeen(code=48, at_ns=12 * S), 2),
    ],
)
def test_one_error_that_nvml_and_the_log_tell_of_is_one(logged: XidSeen, count: int) -> None:
    assert len(merge_xids((XidSeen(code=79, at_ns=10 * S),), (logged,))) == count


def test_the_cause_that_two_lines_name_is_one_error() -> None:
    follows = xid(45, more=", Ch 1 caused by previous Xid 145") + xid(45, more=", Ch 2 caused by previous Xid 145")
    seen = KernelEvents.of([log(follows)], (known(3, "h1", 103, PCI),)).xids[3]
    assert [(one.code, one.is_implied) for one in seen] == [(145, True), (45, False), (45, False)]


def test_an_error_of_links_whose_gpu_is_nobodys_is_a_matter_of_the_host() -> None:
    nobodys = xid(145, gpu=1).replace("pid=9,", "pid='<unknown>',")
    assert told(report_of(ALL_IN, nobodys, described=job(has_pci=False))) == (Kind.COMM_STUCK, Cause.NVLINK, {None})


def test_where_no_rank_has_a_known_process_one_that_the_log_names_may_be_a_ranks() -> None:
    described = job(has_pci=False, has_pids=False)
    assert told(report_of(ALL_IN, xid(79), described=described)) == (Kind.DEVICE_STUCK, Cause.GPU_LOST, {None})
