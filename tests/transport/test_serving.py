"""A node's side alone: what it says on its standard output, and that it ends by itself when nobody is there any more."""

import contextlib
import os
import signal
import subprocess
import time
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest
from tests.transport.playing import play

from pardbg.watchdog.transport.lines import HEARD, Part, decode_answer_line, encode_request, pack, unpack
from pardbg.watchdog.transport.serving import node_name

ENDS_S = 4.0  # the two steps of leaving, and a loaded test machine


@contextlib.contextmanager
def node(**environment: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A node that has greeted."""
    with subprocess.Popen(
        [*play("good"), "--node", "n1"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        env={**os.environ, **environment},
    ) as process:
        try:
            assert read(process) == Part(pardbg="collect/1", id=0, node="n1")
            yield process
        finally:
            process.kill()


def pipe_of(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream


def read(process: "subprocess.Popen[bytes]") -> Part:
    part = decode_answer_line(pipe_of(process.stdout).readline())
    assert isinstance(part, Part)
    return part


def put(process: "subprocess.Popen[bytes]", data: bytes, number: int = 1, within_s: float = 10.0) -> None:
    pipe_of(process.stdin).write(encode_request(number, pack(data), within_s, None))


def test_it_ends_when_its_input_does() -> None:
    with node() as process:
        pipe_of(process.stdin).close()
        assert process.wait(ENDS_S) == 0


@pytest.mark.parametrize("work", [b"spin", b"sleep 100"])
def test_it_ends_when_its_input_does_even_while_it_works(work: bytes) -> None:
    with node() as process:
        put(process, work)
        time.sleep(0.3)
        pipe_of(process.stdin).close()
        assert process.wait(ENDS_S) == 0
        assert b"Traceback" not in pipe_of(process.stderr).read()


def test_it_ends_when_nobody_reads_any_more() -> None:
    with node() as process:
        pipe_of(process.stdout).close()
        put(process, b"hello")
        assert process.wait(ENDS_S) == 0


def test_it_ends_when_nobody_asks_any_more() -> None:
    with node(TEST_IDLE_S="0.5") as process:
        put(process, b"hello", within_s=1.0)
        time.sleep(1.0)
        assert process.poll() is None
        assert process.wait(ENDS_S) == 0


def test_it_ends_when_its_parent_is_gone_though_its_input_stays_open(tmp_path: Path) -> None:
    fifo = tmp_path / "requests"
    os.mkfifo(fifo)
    held = os.open(fifo, os.O_RDWR)
    script = f"{' '.join(play('good'))} --node n1 < {fifo} & echo $!; sleep 1.5"
    with subprocess.Popen(["/bin/sh", "-c", script], stdout=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL) as shell:
        assert shell.stdout is not None
        pid = int(shell.stdout.readline())
        assert "collect/1" in shell.stdout.readline()
        shell.wait(timeout=10.0)
        until_s = time.monotonic() + ENDS_S
        while Path(f"/proc/{pid}").exists() and time.monotonic() < until_s:
            time.sleep(0.05)
        is_there = Path(f"/proc/{pid}").exists()
        if is_there:
            os.kill(pid, signal.SIGKILL)
    os.close(held)
    assert not is_there


def test_prints_of_whatever_it_runs_go_to_standard_error() -> None:
    with node() as process:
        put(process, b"print")
        assert unpack(read(process).data, 1000) == b"n1:print"
        pipe_of(process.stdin).close()
        assert process.wait(ENDS_S) == 0
        assert pipe_of(process.stdout).read() == b""
        assert b"a stray print" in (said := pipe_of(process.stderr).read())
        assert b"a stray child" in said


def test_it_says_that_it_hears_while_it_works() -> None:
    with node() as process:
        put(process, b"sleep 2")
        pipe_of(process.stdin).write(encode_request(0, b"", 0.0, None))
        started_s = time.monotonic()
        assert read(process) == Part(pardbg="collect/1", id=0, node="n1", detail=HEARD)
        assert time.monotonic() - started_s < 1.0


def test_a_request_whose_time_is_over_before_its_turn_is_not_worked_on() -> None:
    with node() as process:
        put(process, b"sleep 2", 1, within_s=1.0)
        put(process, b"sleep 100", 2, within_s=1.0)
        put(process, b"hello", 3)
        late = {read(process).id: "timed-out" for _ in range(2)}
        assert late == {1: "timed-out", 2: "timed-out"}
        assert unpack(read(process).data, 1000) == b"n1:hello"


def test_what_is_no_request_is_passed_over_and_what_cannot_be_used_is_refused() -> None:
    with node() as process:
        requests = pipe_of(process.stdin)
        requests.write(b"rubbish\n\xff\xfe\n" + b"x" * 3_000_000 + b"\n" + b'{"pardbg":"collect/1"}\n')
        requests.write(b'{"pardbg":"collect/2","id":5,"how":"new"}\n')
        assert "'collect/2'" in (refusal := read(process)).detail
        assert (refusal.id, refusal.reason) == (5, "unsupported")
        requests.write(encode_request(6, b"no zlib", 5.0, None))
        assert read(process).reason == "unreadable"
        requests.write(b'{"pardbg":"collect/1.4","id":7,"colour":"blue","data":"' + b64encode(pack(b"hello")) + b'"}\n')
        assert unpack(read(process).data, 1000) == b"n1:hello"


def test_a_node_is_called_as_it_was_told_else_as_slurm_calls_it_else_by_its_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURMD_NODENAME", "n7")
    assert node_name("10.0.0.7") == "10.0.0.7"
    assert node_name() == "n7"
    monkeypatch.delenv("SLURMD_NODENAME")
    assert node_name() == os.uname().nodename
