"""One look at real processes in every kind of wait, and at those that cannot be seen."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from pardbg.collectors.live.host import look_at_processes
from pardbg.collectors.live.look import Looker
from pardbg.watchdog.model.evidence import Absence, Evidence
from pardbg.watchdog.model.names import AbsenceReason, CollectorName
from pardbg.watchdog.model.process import ProcessSample
from tests.collectors.live.started import identify, python, running, wait_for

SECRET = "planted-secret-4711"  # noqa: S105 - it must appear nowhere


def look(pid: int, store_port: int | None = None) -> ProcessSample:
    """What the child process does for each rank, without the child."""
    sample, is_partial = Looker().look(pid, identify(pid).started_ticks, store_port)
    assert not is_partial
    return sample


def look_asleep(pid: int, channel: str) -> ProcessSample:
    wait_for(lambda: channel in Path(f"/proc/{pid}/wchan").read_text())
    return look(pid)


def reasons(evidence: list[Evidence]) -> list[AbsenceReason]:
    return [item.observation.reason for item in evidence if isinstance(item.observation, Absence)]


@pytest.fixture
def store() -> Iterator[socket.socket]:
    """Listens and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def test_a_sleeper_is_still_for_as_long_as_it_sleeps() -> None:
    with running(python("import time; time.sleep(60)")) as pid:
        sample = look_asleep(pid, "nanosleep")
        time.sleep(1.5)
        later = look(pid)
    assert (sample.pid, sample.state, sample.system_call) == (pid, "S", "clock_nanosleep")
    assert sample.still_s is not None
    assert later.still_s is not None
    assert later.still_s - sample.still_s == pytest.approx(1.5, abs=0.5)
    assert later.voluntary_switches == sample.voluntary_switches
    assert later.cpu_s == sample.cpu_s
    assert not sample.uses_device


def test_a_reader_of_a_pipe_is_blocked_on_a_pipe() -> None:
    with running(python("import os; os.read(os.pipe()[0], 1)")) as pid:
        sample = look_asleep(pid, "pipe")
    assert (sample.system_call, sample.blocked_on, sample.is_store) == ("read", "pipe", False)


@pytest.mark.parametrize(
    ("code", "call"),
    [
        ("s.recv(1)", "recvfrom"),
        ("p = select.poll(); p.register(s, select.POLLIN); p.poll()", "poll"),
        ("select.select([s], [], [])", "select"),
    ],
)
def test_a_wait_for_a_socket_names_its_other_end(store: socket.socket, code: str, call: str) -> None:
    port = store.getsockname()[1]
    program = f"import select, socket; s = socket.create_connection(('127.0.0.1', {port})); {code}"
    with running(python(program)) as pid:
        wait_for(lambda: look(pid).system_call in {call, f"p{call}", f"p{call}6"})
        sample, other = look(pid, port), look(pid, 1)
    assert sample.blocked_on == f"socket to 127.0.0.1:{port}"
    assert (sample.is_store, other.is_store) == (True, False)


def test_unix_sockets_and_listening_ones_are_told_apart() -> None:
    with running(python("import socket; a, b = socket.socketpair(); a.recv(1)")) as pid:
        assert look_asleep(pid, "unix").blocked_on == "unix socket"
    code = "import socket; s = socket.create_server(('127.0.0.1', 0)); s.accept()"
    with running(python(code)) as pid:
        assert str(look_asleep(pid, "accept").blocked_on).startswith("socket listening on 127.0.0.1:")


def test_a_file_is_named_with_the_type_of_its_file_system(tmp_path: Path) -> None:
    path = tmp_path / "shard 1.bin"
    holder = (
        f"import fcntl, time; f = open({str(path)!r}, 'w'); fcntl.flock(f, fcntl.LOCK_EX); print(1, flush=True); time.sleep(60)"
    )
    waiter = f"import fcntl; fcntl.flock(open({str(path)!r}, 'w'), fcntl.LOCK_EX)"
    with running(python(holder)), running(python(f"import time; time.sleep(0.5); {waiter}")) as pid:
        sample = look_asleep(pid, "locks_lock")
    assert sample.system_call == "flock"
    assert str(sample.blocked_on).startswith(f"{path} (")
    kinds = {line.split()[-1] for line in Path("/proc/filesystems").read_text().splitlines()}
    assert str(sample.blocked_on).removeprefix(f"{path} (").removesuffix(")") in kinds


def test_a_lock_is_a_futex() -> None:
    with running(python("import _thread; l = _thread.allocate_lock(); l.acquire(); l.acquire()")) as pid:
        sample = look_asleep(pid, "futex")
    assert (sample.system_call, sample.blocked_on) == ("futex", None)


def test_a_busy_loop_runs_and_is_never_still() -> None:
    with running(python("while True: pass")) as pid:
        wait_for(lambda: look(pid).system_call == "running")
        sample = look(pid)
        wait_for(lambda: (look(pid).cpu_s or 0) > (sample.cpu_s or 0) + 0.1)
    assert (sample.state, sample.wait_channel, sample.still_s) == ("R", "", 0.0)


def test_a_stopped_process_is_seen_stopped() -> None:
    with running(python("while True: pass")) as pid:
        os.kill(pid, signal.SIGSTOP)
        wait_for(lambda: look(pid).state == "T")
        sample = look(pid)
    assert sample.wait_channel == "do_signal_stop"
    assert sample.still_s is not None


def test_children_are_described_with_what_they_moved(tmp_path: Path) -> None:
    (tmp_path / "shard").write_bytes(b"x" * 300_000)
    worker = f"import os, time; open({str(tmp_path / 'shard')!r}, 'rb').read(); os.read(os.pipe()[0], 1)"
    code = f"import os, time\nif os.fork():\n    time.sleep(60)\nelse:\n    {worker}"
    with running(python(code)) as pid:
        wait_for(lambda: any(child.system_call == "read" for child in look(pid).children))
        sample = look(pid)
        (child,) = sample.children
        os.kill(child.pid, signal.SIGKILL)
    assert (child.state, child.name.startswith("python")) == ("S", True)
    assert child.wait_channel is not None
    assert child.cpu_s is not None
    assert (sample.moved_bytes or 0) > 300_000


def test_what_ended_or_was_replaced_is_gone() -> None:
    with running(python()) as pid, running(python()) as other:
        ended, living = identify(pid), identify(other)
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: look(pid).state == "Z")
        os.waitpid(pid, 0)
        reused = replace(living, started_ticks=living.started_ticks + 1)
        assert reasons(look_at_processes([ended, reused], 0)) == [AbsenceReason.GONE] * 2


def test_a_zombie_is_seen_as_one() -> None:
    with subprocess.Popen(python("pass")) as process:
        wait_for(lambda: look(process.pid).state == "Z")
        assert look(process.pid).still_s is None


def test_evidence_says_who_saw_whom_and_when() -> None:
    with running(python()) as pid:
        (item,) = look_at_processes([identify(pid, rank=5)], 3, store="10.0.0.1:29500")
    assert isinstance(item.observation, ProcessSample)
    assert item.observation.sample == 3
    assert (item.source, item.rank, item.host, item.origin) == (CollectorName.HOST, 5, "node1", f"/proc/{pid}")
    assert item.observed_at is not None
    assert item.observed_at.endswith("Z")


def test_memory_kills_of_its_group_are_counted() -> None:
    with running(python()) as pid:
        kills = look(pid).oom_kills
    if kills is None:
        pytest.skip("no memory controller here")
    assert kills >= 0


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_a_stranger_sees_the_state_and_says_what_is_missing() -> None:
    code = """
import os, sys
import msgspec
from pardbg.collectors.live.look import Looker
pid, ticks = int(sys.argv[1]), int(sys.argv[2])
os.setgid(65534); os.setuid(65534)
sample, is_partial = Looker().look(pid, ticks, None)
print(msgspec.json.encode([sample, is_partial]).decode())
"""
    with running(python()) as pid:
        wait_for(lambda: "nanosleep" in Path(f"/proc/{pid}/wchan").read_text())
        command = [sys.executable, "-I", "-c", code, str(pid), str(identify(pid).started_ticks)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    sample, is_partial = json.loads(done.stdout)
    assert is_partial is True
    assert (sample["state"], sample["system_call"], sample["wait_channel"], sample["moved_bytes"]) == ("S", None, None, None)
    assert sample["voluntary_switches"] is not None


@pytest.mark.skipif(os.getuid() != 0, reason="needs namespaces")
def test_a_process_in_its_own_namespaces_is_seen() -> None:
    command = [
        "unshare",
        "--pid",
        "--mount",
        "--fork",
        "--kill-child",
        "--mount-proc",
        *python("import os; os.read(os.pipe()[0], 1)"),
    ]
    with running(command) as outer:
        children = Path(f"/proc/{outer}/task/{outer}/children")
        wait_for(lambda: bool(children.read_text().split()))
        pid = int(children.read_text().split()[0])
        sample = look_asleep(pid, "pipe")
    assert (sample.blocked_on, sample.system_call) == ("pipe", "read")


def test_nothing_of_the_command_line_or_the_environment_is_kept() -> None:
    with subprocess.Popen([*python("import time; time.sleep(60)"), SECRET], env={"TOKEN": SECRET}) as process:
        wait_for(lambda: "nanosleep" in Path(f"/proc/{process.pid}/wchan").read_text())
        seen = repr(look_at_processes([identify(process.pid)], 0))
        process.kill()
    assert SECRET not in seen


def test_looking_wakes_nobody_and_leaves_nobody_stopped() -> None:
    with running(python()) as sleeper, running(python("while True: pass")) as busy:
        before = look_asleep(sleeper, "nanosleep").voluntary_switches
        for number in range(30):
            look_at_processes([identify(sleeper), identify(busy)], number)
        assert look(sleeper).voluntary_switches == before
        assert look(busy).state == "R"
