"""Kernel logs of every form, and text that is none: facts, or nothing, and never an error."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pardbg.collectors.parsing.kernel_log import MOST_EVENTS, looks_like_kernel_log, parse_kernel_log, place_log_in_year
from pardbg.watchdog.model.kernel import KernelLog, LinkEvent, LinkKind, Moment, OomKill, XidEvent, pci_key

NOV_22_NS = 1_795_372_195_000_000_000  # 2026-11-22 18:29:55 UTC
DATED = Moment(at_ns=NOV_22_NS)
UP = Moment(up_s=12345.678901)
LOST = "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
XIDS = [
    (f"[12345.678901] {LOST}", XidEvent(pci="0000:3b:00", code=79, when=UP)),
    (f"[12345.678901][  T901] {LOST}", XidEvent(pci="0000:3b:00", code=79, when=UP)),
    (f"<4>[12345.678901] {LOST}", XidEvent(pci="0000:3b:00", code=79, when=UP)),
    (f"kern  :err   : [12345.678901] {LOST}", XidEvent(pci="0000:3b:00", code=79, when=UP)),
    (f"3,812,12345678901,-;{LOST}", XidEvent(pci="0000:3b:00", code=79, when=UP)),
    (f"[Sun Nov 22 18:29:55 2026] {LOST}", XidEvent(pci="0000:3b:00", code=79, when=DATED)),
    (f"2026-11-22T18:29:55,000000+00:00 {LOST}", XidEvent(pci="0000:3b:00", code=79, when=DATED)),
    (f"2026-11-22T19:29:55+0100 n7 kernel: {LOST}", XidEvent(pci="0000:3b:00", code=79, when=DATED)),
    (
        "[1.0] NVRM: Xid (PCI:00000000:DC:00): 94, pid=1234, name=python3, Contained: SM. RST: No",
        XidEvent(pci="0000:dc:00", code=94, when=Moment(up_s=1.0), pid=1234, name="python3"),
    ),
    ("[1.0] NVRM: Xid (0000:3b:00): 31, Ch 0000000b, engmask", XidEvent(pci="0000:3b:00", code=31, when=Moment(up_s=1.0))),
    ("[1.0] NVRM: Xid (PCI:0000:3b:00): 63, Row Remapper: x", XidEvent(pci="0000:3b:00", code=63, when=Moment(up_s=1.0))),
    (
        "[1.0] NVRM: Xid (PCI:0000:dc:00): 45, pid=7, name=python3, Ch 00000001 caused by previous Xid 149",
        XidEvent(pci="0000:dc:00", code=45, when=Moment(up_s=1.0), pid=7, name="python3", caused_by=149),
    ),
    (
        "[1.0] NVRM: Xid (PCI:0000:dc:00): 149, NETIR_LINK_EVT Nonfatal XC0 i0 Link -1 (0x0 0x1 0x2 0x3 0x4 0x5)",
        XidEvent(pci="0000:dc:00", code=149, when=Moment(up_s=1.0), is_fatal=False),
    ),
    (
        "[1.0] NVRM: Xid (PCI:0000:dc:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x0 0x1 0x2 0x3 0x4 0x5)",
        XidEvent(pci="0000:dc:00", code=149, when=Moment(up_s=1.0)),
    ),
]


@pytest.mark.parametrize(("line", "event"), XIDS)
def test_errors_of_gpus_are_read_in_every_form(line: str, event: XidEvent) -> None:
    assert parse_kernel_log(f"[0.5] usb 1-1: new\n{line}\n[99.0] bye\n") == KernelLog(xids=(event,))


def test_a_log_without_years_lies_in_the_year_before_it_was_written() -> None:
    log = parse_kernel_log(f"Nov 22 18:29:55 n7 kernel: [  966.503] {LOST}\n")
    assert log.xids[0].when == Moment(at_ns=91_304_995_000_000_000, up_s=966.503, has_year=False)

    assert place_log_in_year(log, NOV_22_NS + 10**12).xids[0].when == Moment(at_ns=NOV_22_NS, up_s=966.503)
    new_year = place_log_in_year(log, 1_798_800_000_000_000_000)  # 2027-01-01
    assert new_year.xids[0].when == Moment(at_ns=NOV_22_NS, up_s=966.503)
    assert place_log_in_year(log, None).xids[0].when == Moment(up_s=966.503)


def test_programs_that_quote_the_kernel_in_a_journal_are_not_the_kernel() -> None:
    assert parse_kernel_log(f"Nov 22 18:29:55 n7 gpud[12]: {LOST}\nstep 7: {LOST}\n") == KernelLog()


def test_errors_before_the_driver_was_loaded_anew_are_cleared() -> None:
    log = parse_kernel_log(f"[1.0] {LOST}\n[2.0] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  570.1\n[3.0] {LOST}\n")
    assert [xid.is_cleared for xid in log.xids] == [True, False]


def test_a_process_killed_for_memory_is_told_once() -> None:
    told = (
        "[1.0] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=abc,mems_allowed=0-1,oom_memcg=/kubepods/podX,"
        "task_memcg=/kubepods/podX/ctr,task=python3,pid=4321,uid=0\n"
    )
    killed = "[2.0] Memory cgroup out of memory: Killed process 4321 (python3) total-vm:9kB, anon-rss:8kB, UID:0\n"
    kill = OomKill(pid=4321, name="python3", when=Moment(up_s=2.0), memory_group="/kubepods/podX/ctr")

    assert parse_kernel_log(told + killed).kills == (kill,)
    assert parse_kernel_log(told).kills[0].pid == 4321
    assert parse_kernel_log(killed).kills[0].memory_group == ""


@pytest.mark.parametrize(
    ("line", "pid", "name", "is_global"),
    [
        ("Out of memory: Killed process 77 (pt_data_worker) total-vm:9kB", 77, "pt_data_worker", True),
        ("Killed process 78 (pt_main_thread) total-vm:9kB, anon-rss:1kB, file-rss:0kB", 78, "pt_main_thread", False),
        ("Killed process 79, UID 1000, (ray::Worker) total-vm:9kB", 79, "ray::Worker", False),
        ("Memory cgroup out of memory: Killed process 80 (a(b) c) total-vm:9kB", 80, "a(b", False),
    ],
)
def test_kernels_of_all_ages_name_the_process_that_they_killed(line: str, pid: int, name: str, is_global: bool) -> None:  # noqa: FBT001
    (kill,) = parse_kernel_log(f"[1.0] {line}\n").kills
    assert (kill.pid, kill.name, kill.is_global) == (pid, name, is_global)


@pytest.mark.parametrize(
    ("line", "event"),
    [
        ("infiniband mlx5_1: port 1 link down", ("infiniband", "mlx5_1", 1, False)),
        ("mlx5_core 0000:3b:00.0: Port: 1 Link DOWN", ("ethernet", "0000:3b:00.0", None, False)),
        ("mlx5_core 0000:3b:00.0 ens1np0: Link up", ("ethernet", "0000:3b:00.0", None, True)),
        ("bnxt_en 0000:19:00.0 ens1f0np0: NIC Link is Down", ("ethernet", "ens1f0np0", None, False)),
        ("ixgbe 0000:19:00.0 eth0: NIC Link is Up 10 Gbps, Flow Control: None", ("ethernet", "eth0", None, True)),
        ("IPv6: ADDRCONF(NETDEV_CHANGE): ib0: link becomes ready", ("infiniband", "ib0", None, True)),
        ("veth12ab: Link is Down", None),
        ("docker0: port 1(veth1) entered disabled state, Link is Down", None),
        ("ata1: SATA link up 6.0 Gbps (SStatus 133 SControl 300)", None),
    ],
)
def test_ports_that_go_and_come_are_read(line: str, event: tuple[str, str, int | None, bool] | None) -> None:
    links = parse_kernel_log(f"[1.0] {line}\n").links
    if event is None:
        assert links == ()
    else:
        kind, device, port, is_up = event
        assert links == (LinkEvent(kind=LinkKind(kind), device=device, port=port, is_up=is_up, when=Moment(up_s=1.0)),)


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        (f"[1.0] {LOST}\n[2.0] usb 1-1\n", True),
        (f"2026-11-22T18:29:55+0000 n7 kernel: {LOST}\n", True),
        ("[1.0] usb 1-1\n", False),
        (f"step 1\nstep 2\n{LOST}\n", False),
        (f"step 1\nstep 2\n[1.0] {LOST}\n", False),
        ("", False),
    ],
)
def test_a_kernel_log_is_known_by_its_lines(text: str, is_one: bool) -> None:  # noqa: FBT001
    assert looks_like_kernel_log(text) is is_one


@pytest.mark.parametrize(
    ("address", "key"),
    [("00000000:3B:00.0", "0000:3b:00"), ("0000:3b:00", "0000:3b:00"), ("3b:00.0", "0000:3b:00"), ("3b", None), ("", None)],
)
def test_addresses_have_one_spelling(address: str, key: str | None) -> None:
    assert pci_key(address) == key


def test_the_newest_events_are_kept() -> None:
    log = parse_kernel_log("".join(f"[{second}.0] {LOST}\n" for second in range(MOST_EVENTS + 5)))
    assert [log.xids[0].when.up_s, len(log.xids)] == [5.0, MOST_EVENTS]


WORDS = st.sampled_from(
    [
        *("[1.0] ", "NVRM: Xid (PCI:", "0000:3b:00", "): ", "79", ", pid=", "Killed process ", "(", ")", ",pid=", "\n", "\x00"),
        *("oom-kill:constraint=", "mlx5_1: port 1 ", "Link is Down", "Nov 31 99:99:99 n kernel: ", "2026-99-99T99:99:99 "),
        *("é", "9" * 30),
    ]
)


@settings(max_examples=200, deadline=None)
@given(st.lists(WORDS, max_size=40).map("".join))
def test_no_text_is_an_error(text: str) -> None:
    assert isinstance(place_log_in_year(parse_kernel_log(text), 2**80), KernelLog)
    looks_like_kernel_log(text)


@pytest.mark.parametrize(
    "piece", ["[", "[1.0] NVRM: Xid (PCI:0000", "Killed process ", "mlx5_1: port 1 ", "oom-kill:constraint=A,pid=,"]
)
def test_long_lines_cost_no_more_than_their_length(piece: str) -> None:
    assert parse_kernel_log(f"[1.0] {piece * 100_000}\n" * 3) is not None
