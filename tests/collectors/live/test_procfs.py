"""What `/proc` writes, as text: every form that was seen, and what is none."""

import os

import pytest

from pardbg.collectors.procfs import counters
from pardbg.collectors.procfs.memory_group import oom_file, parse_oom_kills
from pardbg.collectors.procfs.mounts import Mount, kind_of_mount, parse_mounts
from pardbg.collectors.procfs.sockets import Connection, find_connection, is_unix_socket
from pardbg.collectors.procfs.system_calls import CALLS, DESCRIPTOR_CALLS, PAGE_FAULT, RUNNING, SystemCall, parse_system_call
from pardbg.watchdog.errors import ParseError

MOUNTS = r"""27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
30 25 0:27 / /data\040sets rw,relatime shared:5 - nfs4 server:/x rw,vers=4.2
34 31 0:33 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
broken line
"""
TCP = """  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:733C 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 101 1 0000000000000000 100 0 0 10 0
   1: 0100007F:A1B2 0200000A:733C 01 00000000:00000000 00:00000000 00000000     0        0 102 1 0000000000000000 20 4 30 10 -1
"""
TCP6 = """  sl local_address remote_address st tx_queue rx_queue tr uid  timeout inode
  0: 0000000000000000FFFF00000100007F:733C 0000000000000000FFFF00000100007F:B3F2 01 0:0 00:00 00000000 0 0 103 1 0 20 4 30 10 -1
  1: 000080FE00000000FF005450B6AD1DFE:0016 000080FE00000000FF005450B6AD1DFE:C001 01 0:0 00:00 00000000 0 0 104 1 0 20 4 30 10 -1
"""


@pytest.mark.parametrize(
    ("text", "state", "call"),
    [
        ("running\n", "R", SystemCall(name=RUNNING)),
        ("-1 0x7fff46a53140 0x7f79171aee4b\n", "T", SystemCall(name=RUNNING)),
        ("-1 0x7fff46a53140 0x7f79171aee4b\n", "D", SystemCall(name=PAGE_FAULT)),
        ("0 0x3 0xf0 0x1 0x0 0x0 0x0 0x7fff 0x7f1\n", "S", SystemCall(name="read", arguments=(3, 240, 1, 0, 0, 0))),
        ("999 0x1 0x0 0x0 0x0 0x0 0x0 0x1 0x2\n", "S", SystemCall(name="call 999", arguments=(1, 0, 0, 0, 0, 0))),
    ],
)
def test_a_system_call_is_named(text: str, state: str, call: SystemCall) -> None:
    assert parse_system_call(text, state, "x86_64") == call


def test_numbers_belong_to_machines() -> None:
    line = "63 0x3 0x0 0x0 0x0 0x0 0x0 0x1 0x2"
    assert parse_system_call(line, "S", "aarch64").name == "read"
    assert parse_system_call(line, "S", "riscv64").name == "call 63"


@pytest.mark.parametrize("machine", sorted(CALLS))
def test_tables_name_no_call_twice(machine: str) -> None:
    names = list(CALLS[machine].values())
    assert len(names) == len(set(names))
    assert DESCRIPTOR_CALLS - set().union(*(table.values() for table in CALLS.values())) == set()


@pytest.mark.parametrize("text", ["", "read 1 2", "1 zz"])
def test_other_lines_are_no_system_call(text: str) -> None:
    with pytest.raises(ParseError):
        parse_system_call(text, "S")


def test_counters_are_read() -> None:
    assert counters.voluntary_switches("Name:\tx\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t7\n") == 12
    assert counters.voluntary_switches("Name:\tx\nnonvoluntary_ctxt_switches:\t7\n") is None
    assert counters.last_ran_ms("cat (1, #threads: 1)\n---\nse.exec_start          :      12547996.946408\n") == 12547996.946408
    assert counters.last_ran_ms("") is None
    io = "rchar: 10\nwchar: 20\nsyscr: 7\nsyscw: 7\nread_bytes: 300\nwrite_bytes: 4000\ncancelled_write_bytes: 5\n"
    assert counters.moved_bytes(io) == 4330
    assert counters.cpu_ns("698801 4000 7\n") == 698801
    assert counters.cpu_ns("") is None
    assert counters.last_processor("1 (a) b) S " + " ".join(map(str, range(100, 150)))) == 135
    assert counters.last_processor("1 (a) S 1 2") is None


def test_mounts_are_read_with_blanks_in_their_names() -> None:
    mounts = list(parse_mounts(MOUNTS))
    assert [mount.kind for mount in mounts] == ["ext4", "nfs4", "cgroup", "cgroup2"]
    assert mounts[1] == Mount(number=30, root="/", place="/data sets", kind="nfs4", options=("rw", "vers=4.2"))
    assert kind_of_mount(MOUNTS, "pos:\t0\nflags:\t0100000\nmnt_id:\t30\n") == "nfs4"
    assert kind_of_mount(MOUNTS, "pos:\t0\n") is None
    assert kind_of_mount(MOUNTS, "mnt_id:\t99\n") is None


def test_connections_are_found_by_inode() -> None:
    assert find_connection([TCP, TCP6], 102) == Connection(local=("127.0.0.1", 41394), remote=("10.0.0.2", 29500))
    listening = find_connection([TCP, TCP6], 101)
    assert listening == Connection(local=("127.0.0.1", 29500), remote=None)
    assert listening is not None
    assert listening.words == "socket listening on 127.0.0.1:29500"
    mapped = find_connection([TCP, TCP6], 103)
    assert mapped is not None
    assert mapped.words == "socket to 127.0.0.1:46066"
    assert mapped.has_port(29500)
    assert not mapped.has_port(0)
    six = find_connection([TCP, TCP6], 104)
    assert six is not None
    assert six.words == "socket to [fe80::5054:ff:fe1d:adb6]:49153"
    assert find_connection([TCP, TCP6], 20) is None


def test_unix_sockets_are_found_by_inode() -> None:
    table = "Num       RefCount Protocol Flags    Type St Inode Path\nffff: 00000002 00000000 00010000 0001 01 555 /run/x 777\n"
    assert is_unix_socket(table, 555)
    assert not is_unix_socket(table, 777)


def test_the_counter_of_memory_kills_is_found() -> None:
    split = "9:name=systemd:/\n4:cpu,memory:/job/7\n0::/\n"
    assert oom_file(split, parse_mounts(MOUNTS)) == "/sys/fs/cgroup/memory/job/7/memory.oom_control"
    assert oom_file("0::/job/7\n", parse_mounts(MOUNTS)) == "/sys/fs/cgroup/unified/job/7/memory.events"
    assert oom_file("0::/../other\n", parse_mounts(MOUNTS)) is None
    assert oom_file("", parse_mounts(MOUNTS)) is None
    assert (
        oom_file("0::/pod/7\n", [Mount(number=1, root="/pod", place="/c", kind="cgroup2", options=())]) == "/c/7/memory.events"
    )
    assert oom_file("0::/pod/7\n", [Mount(number=1, root="/other", place="/c", kind="cgroup2", options=())]) is None
    assert parse_oom_kills("low 0\nhigh 0\nmax 0\noom 0\noom_kill 3\noom_group_kill 0\n") == 3
    assert parse_oom_kills("oom_kill_disable 0\nunder_oom 0\n") is None


def test_this_machine_has_a_table() -> None:
    assert os.uname().machine in CALLS
