"""Tracebacks in the files that real processes write to: whose they are, and what is never opened."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pardbg.collectors.live.logs import read_logs
from pardbg.collectors.parsing.present_attempt import present_attempt
from pardbg.collectors.reading_children import reader_command
from pardbg.watchdog.model.evidence import Absence, Evidence, LogTraceback
from pardbg.watchdog.model.log_event import LogSeen, NcclWarning
from pardbg.watchdog.model.names import AbsenceReason, CollectorName
from pardbg.watchdog.model.world import RankProcess
from tests.collectors.live.started import identify, python, running, wait_for
from tests.diagnosis.log_files import torchrun_report

TRACEBACK = 'Traceback (most recent call last):\n  File "/app/t.py", line 12, in step\n    raise\nValueError: bad batch\n'
OWN = LogTraceback(exception="ValueError: bad batch", where="/app/t.py:12 step")
STUCK = """
import sys, time
sys.path += {places!r}
from pardbg.collectors.live import answering
answering.{function} = lambda *_: time.sleep(60)
from pardbg.collectors import reading_child
reading_child.main()
"""


def stuck(function: str) -> list[str]:
    command = reader_command()
    return [*command[:4], STUCK.format(places=command[5:], function=function)]


def signed(rank: int) -> str:
    return "".join(f"[rank{rank}]: {line}" for line in TRACEBACK.splitlines(keepends=True))


def says(text: str) -> list[str]:
    return python(f"import time, sys; sys.stderr.write({text!r}); sys.stderr.flush(); time.sleep(60)")


def found(evidence: list[Evidence]) -> list[tuple[int | None, str]]:
    return [(item.rank, item.observation.exception) for item in evidence if isinstance(item.observation, LogTraceback)]


def reasons(evidence: list[Evidence]) -> list[tuple[int | None, AbsenceReason]]:
    return [(item.rank, item.observation.reason) for item in evidence if isinstance(item.observation, Absence)]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "stderr.log"


def test_traceback_in_a_ranks_own_file_is_the_ranks(log: Path) -> None:
    text = "\x1b[31m50%\x1b[0m\rstep\n\x1b]0;title\x07" + TRACEBACK + "\x1b[2Jbye\n"
    with log.open("wb") as err, running(says(text), err=err) as pid:
        wait_for(lambda: log.read_bytes().endswith(b"bye\n"))
        (item,) = read_logs([identify(pid, 3)])
    assert item.observation == OWN
    assert (item.source, item.rank, item.host, item.origin) == (CollectorName.RANK_LOG, 3, "node1", str(log))
    assert item.observed_at is not None
    assert abs(time.time() - log.stat().st_mtime) < 60
    assert item.observed_at[:4] == time.strftime("%Y", time.gmtime())
    assert item.observed_at.endswith("Z")


def test_other_lines_tell_events_but_not_those_of_an_attempt_that_has_ended(log: Path) -> None:
    warning = "node1:7:8 [0] net.cc:1 NCCL WARN NET/IB : Got async event : port error\n"
    text = warning.replace("port error", "fatal port error") + torchrun_report({0: 1}, root=0) + warning
    with log.open("wb") as err, running(says(text), err=err) as pid:
        wait_for(lambda: log.stat().st_size >= len(text))
        (item,) = read_logs([identify(pid, 3)])
    assert item.rank == 3
    assert isinstance(item.observation, LogSeen)
    assert [type(event) for event in item.observation.events] == [NcclWarning]
    assert "fatal" not in item.observation.events[0].text


def test_output_and_error_in_one_file_are_read_once(log: Path) -> None:
    with log.open("wb") as err, running(says(TRACEBACK), out=err, err=err) as pid:
        wait_for(lambda: log.stat().st_size > 100)
        assert found(read_logs([identify(pid)])) == [(0, OWN.exception)]


def test_unsigned_traceback_in_a_shared_file_is_nobodys(log: Path) -> None:
    with log.open("ab") as err, running(says(TRACEBACK), err=err) as one, running(python(), err=err) as other:
        wait_for(lambda: log.stat().st_size > 100)
        assert read_logs([identify(one), identify(other, 1)]) == []


def test_signed_traceback_in_a_shared_file_is_the_signers_even_after_its_end(log: Path) -> None:
    with log.open("ab") as err, running(says(signed(5)), err=err) as one, running(python(), err=err) as other:
        wait_for(lambda: log.stat().st_size > 100)
        assert found(read_logs([identify(one), identify(other, 1)])) == [(5, OWN.exception)]


def test_unsigned_traceback_in_a_file_that_others_sign_is_nobodys(log: Path) -> None:
    with log.open("ab") as err, running(says("[rank7]: hello\n" + TRACEBACK), err=err) as pid:
        wait_for(lambda: log.stat().st_size > 100)
        assert read_logs([identify(pid)]) == []


def launched_by(command: list[str], log: Path) -> Iterator[int]:
    """The child of a process that writes into the same file."""
    with log.open("ab") as err, running(command, err=err) as parent:
        children = Path(f"/proc/{parent}/task/{parent}/children")
        wait_for(lambda: log.stat().st_size > 100 and bool(children.read_text()))
        child = int(children.read_text())
        try:
            yield child
        finally:
            os.kill(child, 9)


def test_file_that_the_launcher_writes_too_is_shared(log: Path) -> None:
    launcher = f"import subprocess, sys; subprocess.run({says(TRACEBACK)!r})"
    for child in launched_by(python(launcher), log):
        assert read_logs([identify(child)]) == []


def test_file_that_only_a_shell_shares_is_the_ranks_own(log: Path, tmp_path: Path) -> None:
    script = tmp_path / "t.py"
    script.write_text(f"import time, sys; sys.stderr.write({TRACEBACK!r}); sys.stderr.flush(); time.sleep(60)")
    for child in launched_by(["/bin/sh", "-c", f"{sys.executable} -I {script}; true"], log):
        assert found(read_logs([identify(child)])) == [(0, OWN.exception)]


def test_pipe_fifo_terminal_and_socket_are_neither_opened_nor_missed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    fifo = os.open(tmp_path / "fifo", os.O_RDWR)
    terminal, other_end = os.openpty()
    try:
        with running(python(), out=subprocess.PIPE, err=fifo) as one, running(python(), out=terminal, err=terminal) as other:
            assert read_logs([identify(one), identify(other, 1)]) == []
    finally:
        for descriptor in (fifo, terminal, other_end):
            os.close(descriptor)


def test_file_that_the_rank_may_only_read_is_none_of_its_logs(log: Path) -> None:
    log.write_text(TRACEBACK)
    with running(
        python(f"import os, time; os.dup2(os.open({str(log)!r}, os.O_PATH), 2); print(flush=True); time.sleep(60)")
    ) as pid:
        wait_for(lambda: Path(f"/proc/{pid}/fd/2").readlink() == log)
        os.utime(log)
        assert read_logs([identify(pid)]) == []


def test_name_swapped_for_a_link_leads_nowhere_else(log: Path, tmp_path: Path) -> None:
    secret = tmp_path / "other"
    secret.write_text(TRACEBACK.replace("bad batch", "hunter2"))
    with log.open("wb") as err, running(says(TRACEBACK), err=err) as pid:
        wait_for(lambda: log.stat().st_size > 100)
        log.unlink()
        log.symlink_to(secret)
        assert found(read_logs([identify(pid)])) == [(0, OWN.exception)]


def test_file_of_before_the_start_says_nothing_of_now(log: Path) -> None:
    log.write_text(TRACEBACK)
    time.sleep(0.1)
    with log.open("ab") as err, running(python(), err=err) as pid:
        assert read_logs([identify(pid)]) == []


def test_only_the_end_of_a_long_log_is_read(log: Path) -> None:
    text = f"{TRACEBACK!r} + ('y' * 99 + chr(10)) * 90_000 + 'end'"
    code = f"import sys, time; sys.stderr.write({text}); time.sleep(60)"
    with log.open("wb") as err, running(python(code), err=err) as pid:
        wait_for(lambda: log.read_bytes().endswith(b"end"))
        assert read_logs([identify(pid)], within_s=20) == []


@pytest.mark.parametrize("function", ["list_outputs", "read_output"])
def test_dead_mount_costs_its_deadline(function: str, log: Path) -> None:
    with log.open("wb") as err, running(says(TRACEBACK), err=err) as pid:
        wait_for(lambda: log.stat().st_size > 100)
        start_s = time.monotonic()
        assert reasons(read_logs([identify(pid, 2)], within_s=1, command=stuck(function))) == [(2, AbsenceReason.TIMED_OUT)]
    assert time.monotonic() - start_s < 2


def test_process_that_has_gone_and_one_that_took_its_number_are_told(log: Path) -> None:
    with log.open("wb") as err, running(says(TRACEBACK), err=err) as pid:
        rank = identify(pid)
        later = RankProcess(rank=1, pid=pid, started_ticks=rank.started_ticks - 1, host="node1")
        assert reasons(read_logs([later])) == [(1, AbsenceReason.GONE)]
    assert reasons(read_logs([rank])) == [(0, AbsenceReason.GONE)]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to have something denied to another user")
def test_another_users_rank_is_denied(log: Path) -> None:
    setpriv = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    with log.open("wb") as err, running(says(TRACEBACK), err=err) as pid:
        wait_for(lambda: log.stat().st_size > 100)
        assert reasons(read_logs([identify(pid)], command=[*setpriv, *reader_command()])) == [(0, AbsenceReason.DENIED)]


def test_rank_of_another_user_and_namespace_is_read_through_its_own_descriptor(log: Path, tmp_path: Path) -> None:
    script = tmp_path / "t.sh"
    script.write_text(f'mount -t tmpfs none {tmp_path} && exec {sys.executable} -I -S -c "$1"')
    code = says(TRACEBACK)[-1]
    with log.open("wb") as err, running(["unshare", "--mount", "/bin/sh", str(script), code], err=err) as pid:
        wait_for(lambda: log.stat().st_size > 100)
        if b"unshare" in log.read_bytes() or b"mount:" in log.read_bytes():
            pytest.skip("no mount namespaces here")
        assert found(read_logs([identify(pid, is_at_home=False)])) == [(0, OWN.exception)]


ENDED = (
    "W1129 14:23:01 10 api.py:1028] Sending process 77 closing signal SIGTERM\n"
    "E1129 14:23:01 10 api.py:999] failed (exitcode: 1) local_rank: 1 (pid: 78) of binary: x\n"
)
REPORT = "====\njob FAILED\n[0]:\n  rank      : 1 (local_rank: 1)\n  exitcode  : 1 (pid: 78)\n  traceback : old\n====\n"


@pytest.mark.parametrize(
    ("text", "present"),
    [
        ("no end\nat all", "no end\nat all"),
        ("old\n" + ENDED + "new\n", "new\n"),
        ("old\n" + ENDED + REPORT + "new\n", "new\n"),
        ("old\n" + ENDED, ""),
        ("this\n" + ENDED.replace("77", "100"), "this\n" + ENDED.replace("77", "100")),
        ("old\n" + ENDED + "this\n" + ENDED.replace("77", "100"), "this\n" + ENDED.replace("77", "100")),
        (ENDED.rstrip(), ""),
    ],
)
def test_log_begins_where_the_last_attempt_without_the_living_ended(text: str, present: str) -> None:
    assert present_attempt(text, {100, 101}) == present


def test_traceback_of_an_earlier_attempt_accuses_nobody(log: Path) -> None:
    with log.open("ab") as err, running(says(signed(0) + ENDED), err=err) as pid:
        wait_for(lambda: log.read_text().endswith(ENDED))
        assert read_logs([identify(pid)]) == []
