"""The kernel log of this machine: its events and nothing else, or why there are none."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pardbg.collectors.live.kernel_log import read_kernel_log
from pardbg.collectors.reading_children import reader_command
from pardbg.watchdog.model.evidence import Absence
from pardbg.watchdog.model.kernel import KernelLog
from pardbg.watchdog.model.names import AbsenceReason, CollectorName

NO_RIGHT = ["setpriv", "--bounding-set", "-syslog,-sys_admin", "--inh-caps", "-all"]


GROUPS = ((Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"), (Path("/sys/fs/cgroup"), "memory.max"))
"""Of the first and of the second version of control groups: where they lie, and what limits them."""


@pytest.fixture
def small_group() -> Iterator[Path]:
    """A control group in which next to nothing fits."""
    root, limit = next((root, limit) for root, limit in GROUPS if root.is_dir())
    group = root / f"pardbg-test-{os.getpid()}"
    if not os.access(root / "cgroup.procs", os.W_OK):
        pytest.skip("needs a control group of its own")
    group.mkdir()
    try:
        if not (group / limit).exists():
            pytest.skip("needs the memory controller of control groups")
        (group / limit).write_text("20M")
        if (group / "memory.swap.max").exists():
            (group / "memory.swap.max").write_text("0")
        yield group
    finally:
        group.rmdir()


def test_a_process_that_the_kernel_kills_for_memory_is_found(small_group: Path) -> None:
    began_ns = time.time_ns()
    eat = f"open({str(small_group / 'cgroup.procs')!r}, 'w').write('0'); b = bytearray(200_000_000)"
    hungry = subprocess.Popen([sys.executable, "-c", eat])
    assert hungry.wait() == -9

    (item,) = read_kernel_log("h1", began_ns)
    if isinstance(item.observation, Absence):
        pytest.skip(f"needs the kernel log: {item.observation.detail}")
    assert isinstance(item.observation, KernelLog)
    assert [(item.host, item.rank, item.source)] == [("h1", None, CollectorName.KERNEL_LOG)]
    kill = next(kill for kill in item.observation.kills if kill.pid == hungry.pid)
    assert kill.memory_group.endswith(small_group.name)
    assert not kill.is_global
    assert abs((kill.when.at_ns or 0) - began_ns) < 30e9

    (later,) = read_kernel_log("h1", time.time_ns() + 60 * 10**9)
    assert isinstance(later.observation, KernelLog)
    assert later.observation.kills == ()


def test_without_the_right_it_is_unknown_and_never_empty() -> None:
    if os.getuid() != 0:
        pytest.skip("needs root, to give up a right")
    (item,) = read_kernel_log("h1", 0, command=[*NO_RIGHT, *reader_command()])
    if isinstance(item.observation, KernelLog):
        pytest.skip("here everybody may read the kernel log")
    assert item.observation == Absence(
        reason=AbsenceReason.DENIED,
        detail="the kernel log is not readable (needs CAP_SYSLOG, and /dev/kmsg in a container): "
        "errors of GPUs and kills for memory would be in it",
    )


def test_a_reader_that_never_answers_is_given_up() -> None:
    began_s = time.monotonic()
    (item,) = read_kernel_log("h1", 0, within_s=0.3, command=["sleep", "60"])
    assert isinstance(item.observation, Absence)
    assert item.observation.reason is AbsenceReason.TIMED_OUT
    assert time.monotonic() - began_s < 5
