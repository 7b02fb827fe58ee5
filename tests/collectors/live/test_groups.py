"""Process groups read out of memory: of a real job, and out of garbage."""

import ctypes
import importlib.util
import os
import random
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pardbg.collectors.live.asking import Asker
from pardbg.collectors.live.asking_protocol import GroupsRead, GroupsRequest
from pardbg.collectors.live.group_memory import GroupInfo, read_group
from pardbg.collectors.live.process_folder import ProcessFolder
from pardbg.collectors.live.stacks import take_stacks
from pardbg.watchdog.model.evidence import Evidence, Stack
from pardbg.watchdog.model.world import RankProcess
from tests.collectors.live.started import identify, wait_for

SECRET = "planted-secret-4711"  # noqa: S105 - it must appear nowhere
INSTANCE, OBJECT, TEXT = 0x10000, 0x20000, 0x30000

JOB = f"""
import sys, time
import torch, torch.distributed as dist
rank, port = int(sys.argv[1]), int(sys.argv[2])
dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{{port}}", rank=rank, world_size=4)
pairs = [dist.new_group(pair, group_desc="tp") for pair in ([0, 1], [2, 3])]
whole = dist.new_group([1, 2, 3], group_desc="a description of more than fifteen characters")
x = torch.ones(4)
dist.all_reduce(x)
if rank == 0:
    dist.recv(x, src=3, tag=5)
if rank == 1:
    dist.all_reduce(tensor=x, op=dist.ReduceOp.SUM, group=pairs[0])
if rank == 2:
    dist.broadcast(x, 1, whole)
if rank == 3:
    dist.all_gather_object([None] * 4, {{"{SECRET}": '"tag": 4711, "src": 3'}})
"""


def memory_of(rank: int, size: int, text: bytes, *, shift: int = 0, backend: int = 1) -> dict[int, bytes]:
    """An instance, its object with one or two words of reference counts, and a text that does not fit into it."""
    head = struct.pack("<QQ", 0x7F00_0000_1000, 2) + bytes(shift)
    fields = struct.pack("<QiiBxxxxxxx", 0x7F00_0000_2000, rank, size, backend)
    place = OBJECT + len(head) + len(fields) + 16
    is_inline = len(text) < 16
    string = struct.pack("<QQ16s", place if is_inline else TEXT, len(text), text[:15] if is_inline else b"")
    return {
        INSTANCE: struct.pack("<QQQ", 1, 0x7F00_0000_3000, OBJECT) + bytes(64),
        OBJECT: (head + fields + string).ljust(160, b"\0"),
        TEXT: text.ljust(80, b"\0"),
    }


def read_from(memory: dict[int, bytes], world_size: int | None = 8) -> GroupInfo | None:
    return read_group(lambda address, size: memory[address][:size] if address in memory else None, INSTANCE, world_size)


@pytest.mark.parametrize("shift", [0, 8])
@pytest.mark.parametrize("text", ["", "tp", "fifteen letters", "sixteen letters!", "x" * 64])
def test_both_layouts_are_read(shift: int, text: str) -> None:
    assert read_from(memory_of(1, 4, text.encode(), shift=shift)) == GroupInfo(size=4, rank=1, description=text)


@pytest.mark.parametrize(
    "memory",
    [
        {},
        memory_of(4, 4, b"tp"),
        memory_of(-1, 4, b"tp"),
        memory_of(0, 9, b"tp"),
        memory_of(0, 4, b"tp", backend=77),
        memory_of(0, 4, b"t\np"),
        memory_of(0, 4, "tü".encode()),
        memory_of(0, 4, b"x" * 65),
        {**memory_of(0, 4, b"tp"), INSTANCE: bytes(24)},
        {**memory_of(0, 4, b"tp"), OBJECT: bytes(160)},
        {key: value for key, value in memory_of(0, 4, b"x" * 30).items() if key != TEXT},
    ],
)
def test_what_does_not_make_sense_is_not_believed(memory: dict[int, bytes]) -> None:
    assert read_from(memory) is None


def test_garbage_gives_nothing() -> None:
    noise = random.Random(7)
    garbage = ctypes.create_string_buffer(noise.randbytes(65536))
    start = ctypes.addressof(garbage)
    addresses = [start + noise.randrange(65000) for _ in range(500)]
    addresses += [0, 1, 8, 2**63 - 1, 2**64 - 1, start * 2, id(garbage), id(JOB), id(GroupInfo), id(noise)]
    with ProcessFolder(os.getpid()) as own:
        assert [address for address in addresses if read_group(own.memory, address, 8) is not None] == []
    with Asker() as asker:
        answer = asker.ask(
            GroupsRequest(pid=os.getpid(), started_ticks=identify(os.getpid()).started_ticks, addresses=(start, 7))
        )
    assert answer == GroupsRead(groups=(None, None))


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[RankProcess]]:
    """Four gloo ranks, each for ever in an operation of its own."""
    script = tmp_path_factory.mktemp("job") / "job.py"
    script.write_text(JOB)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    command = [sys.executable, str(script)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    processes = [
        subprocess.Popen([*command, str(rank), str(port)], env=environment, stderr=subprocess.DEVNULL) for rank in range(4)
    ]
    try:
        wait_for_groups(processes)
        yield [identify(process.pid, rank=rank) for rank, process in enumerate(processes)]
    finally:
        for process in processes:
            process.kill()
            process.wait()


def wait_for_groups(processes: list["subprocess.Popen[bytes]"]) -> None:
    """Imports take several seconds on a busy machine."""

    def are_waiting() -> bool:
        found = take_stacks([identify(process.pid, rank=rank) for rank, process in enumerate(processes)], 0)
        return [set(groups_of(item)) for item in found] == [set(), {"all_reduce"}, {"broadcast"}, {"all_gather"}]

    for _ in range(3):
        try:
            wait_for(are_waiting)
        except AssertionError:
            continue
        return


def groups_of(item: Evidence) -> dict[str, tuple[str, ...]]:
    """By operation: size, group rank, description, and whether it is the default group."""
    assert isinstance(item.observation, Stack), item
    main = item.observation.main_thread
    names = ("group_size", "group_rank", "group_desc", "is_default_group")
    frames = (
        [frame for frame in main.frames if "group_size" in frame.locals and "c10d_logger" not in frame.filename] if main else []
    )
    return {frame.name: tuple(frame.locals.get(name, "") for name in names) for frame in frames}


@pytest.mark.live
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="pip install torch")
def test_groups_of_a_real_job_are_named_and_nothing_else_is_told(ranks: list[RankProcess]) -> None:
    before = [switches(rank.pid) for rank in ranks]
    found = take_stacks(ranks, 0, world_size=4)
    assert [groups_of(item) for item in found] == [
        {},  # recv leaves its group at None, which is the default one
        {"all_reduce": ("2", "1", "tp", "False")},
        {"broadcast": ("3", "1", "a description of more than fifteen characters", "False")},
        {"all_gather": ("4", "3", "default_pg", "True")},
    ]
    assert [switches(rank.pid) for rank in ranks] == before
    assert SECRET not in repr(found)
    assert "'4711'" not in repr(found)  # a number in a text of the user's
    assert [set(groups_of(item)) for item in take_stacks(ranks, 0, world_size=1)] == [set()] * 4


@pytest.mark.live
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="pip install torch")
def test_wrappers_tell_peers_and_whether_a_group_was_given(ranks: list[RankProcess]) -> None:
    wrappers = []
    for item in take_stacks(ranks, 0):
        assert isinstance(item.observation, Stack)
        main = item.observation.main_thread
        assert main is not None
        wrappers.append([frame.locals for frame in main.frames if frame.filename.endswith("torch/distributed/c10d_logger.py")])
    assert wrappers[0] == [{"src": "3", "tag": "5", "is_default_group": "True"}]
    assert wrappers[1][0]["is_default_group"] == "False"
    assert wrappers[1][0]["group_desc"] == "tp"
    assert "is_default_group" not in wrappers[2][0]
    assert wrappers[3] == [{"group": "None", "is_default_group": "True"}, {}]  # of all_gather, of all_gather_object


def switches(pid: int) -> str:
    return Path(f"/proc/{pid}/status").read_text().partition("\nvoluntary")[2].splitlines()[0]
