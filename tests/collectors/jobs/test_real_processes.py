"""Real processes, started by nobody's launcher: plain interpreters that sleep, with what a rank has in its environment."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
import pytest
from tests.collectors.jobs.processes import absences, rank_environment

from pardbg.collectors.jobs.census import take_census
from pardbg.collectors.jobs.find import find_world
from pardbg.collectors.jobs.process import Census
from pardbg.collectors.jobs.query import ChosenJob, JobQuery
from pardbg.watchdog.errors import AmbiguousJobError
from pardbg.watchdog.model.world import World

SLEEP = "import time; time.sleep(60)"
SECRET = "planted-secret-0815"  # noqa: S105 - it must appear nowhere
PORTS = iter(range(21_000, 22_000))
BECOME_NOBODY = (
    *("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"),
    *("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"),  # to reach an interpreter below /root, no more
)

Start = Callable[..., int]


@pytest.fixture
def port() -> int:
    """Tells this test's worlds from all others: nothing listens there."""
    return os.getpid() * 1000 + next(PORTS)


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts one process, and ends all at the end."""
    started: list[subprocess.Popen[bytes]] = []

    def run(environment: dict[str, str], command: Sequence[str] = (sys.executable, "-c", SLEEP)) -> int:
        process = subprocess.Popen(command, env={"PATH": os.environ["PATH"], **environment})
        started.append(process)
        return process.pid

    yield run
    for process in started:
        process.kill()
    for process in started:
        process.wait()


def wait_until(condition: Callable[[], object]) -> None:
    end_s = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end_s, "it did not come"
        time.sleep(0.01)


def find(job: str) -> ChosenJob:
    return find_world(JobQuery(job=f"run:{job}"))


def pids(world: World) -> dict[int, int]:
    return {rank.rank: rank.pid for rank in world.ranks}


def child_of(pid: int) -> int:
    """The first child, once it is there."""
    path = Path(f"/proc/{pid}/task/{pid}/children")
    wait_until(lambda: path.read_text().split())
    return int(path.read_text().split()[0])


def test_two_worlds_at_once_are_told_apart(start: Start, port: int) -> None:
    names = {port: f"left-{port}", port + 1: f"right-{port}"}
    started = {
        name: {rank: start(rank_environment(rank, 2, own_port, PARDBG_JOB=name)) for rank in range(2)}
        for own_port, name in names.items()
    }
    assert {name: pids(find(name).world) for name in started} == started
    with pytest.raises(AmbiguousJobError) as caught:
        find_world(JobQuery(world_size=2))
    text = "\n".join(caught.value.choices)
    assert all(f"pardbg scan --job {name}" in text for name in started)


def test_of_two_processes_with_one_rank_the_younger_is_the_rank(start: Start, port: int) -> None:
    job = f"twice-{port}"
    environment = rank_environment(0, 1, port, PARDBG_JOB=job)
    older = start(environment)
    time.sleep(0.05)  # the kernel counts start times in ticks of 10 ms
    younger = start(environment)
    for world in (find(job).world, find_world(JobQuery(pids=(older,))).world):
        assert pids(world) == {0: younger}
        assert absences(world.evidence) == [(0, "duplicate-rank")]


def test_rank_below_a_shell_is_found_and_the_shell_means_it(start: Start, port: int) -> None:
    job = f"shell-{port}"
    shell = start(rank_environment(0, 1, port, PARDBG_JOB=job), ("bash", "-c", f"{sys.executable} -c '{SLEEP}'; true"))
    rank = child_of(shell)
    wait_until(lambda: b"time.sleep" in Path(f"/proc/{rank}/cmdline").read_bytes())
    try:
        assert pids(find(job).world) == {0: rank}
        assert pids(find_world(JobQuery(pids=(shell,))).world) == {0: rank}
    finally:
        os.kill(rank, signal.SIGKILL)


def test_forked_child_of_a_rank_is_not_the_rank_and_means_it(start: Start, port: int) -> None:
    job = f"fork-{port}"
    code = f"import os; os.fork(); {SLEEP}"
    rank = start(rank_environment(0, 1, port, PARDBG_JOB=job), (sys.executable, "-c", code))
    child = child_of(rank)
    try:
        world = find(job).world
        assert (pids(world), world.evidence) == ({0: rank}, ())
        assert find_world(JobQuery(pids=(child,))).world == world
    finally:
        os.kill(child, signal.SIGKILL)


def test_killed_rank_that_nobody_waited_for_has_ended_with_its_signal(start: Start, port: int) -> None:
    job = f"killed-{port}"
    ranks = [start(rank_environment(rank, 3, port, PARDBG_JOB=job)) for rank in range(3)]
    os.kill(ranks[1], signal.SIGKILL)
    wait_until(lambda: ") Z " in Path(f"/proc/{ranks[1]}/stat").read_text())
    world = find(job).world
    assert pids(world) == {0: ranks[0], 2: ranks[2]}
    assert [(ended.rank, ended.pid, ended.exit_code) for ended in world.ended] == [(1, ranks[1], -9)]
    assert find_world(JobQuery(pids=(ranks[1],))).world == world


def test_rank_in_namespaces_of_its_own_is_found_and_not_at_home_with_the_numbers_that_it_has_there(
    start: Start, port: int
) -> None:
    job = f"container-{port}"
    unshare = ("unshare", "--user", "--map-user=1000", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc")
    command = (*unshare, sys.executable, "-c", SLEEP)
    outer = start(rank_environment(0, 1, port, PARDBG_JOB=job), command)
    rank = child_of(outer)
    wait_until(lambda: b"time.sleep" in Path(f"/proc/{rank}/cmdline").read_bytes().split(b"\0")[2])
    world = find(job).world
    assert [(found.pid, found.is_at_home) for found in world.ranks] == [(rank, False)]
    assert [(found.own_pid, found.uid, found.own_uid) for found in world.ranks] == [(1, os.getuid(), 1000)]


def test_processes_that_say_nothing_of_a_rank_can_be_named(start: Start) -> None:
    started = [start({}) for _ in range(2)]
    assert pids(find_world(JobQuery(pids=tuple(reversed(started)))).world) == {0: started[1], 1: started[0]}


def test_nothing_but_the_closed_list_leaves_the_reader(start: Start, port: int) -> None:
    job = f"secret-{port}"
    environment = rank_environment(0, 1, port, PARDBG_JOB=job, API_TOKEN=SECRET, NCCL_TIMEOUT=SECRET)
    start(environment, (sys.executable, "-c", SLEEP, "--token", SECRET, f"--rank={SECRET}"))
    encoded = msgspec.json.encode((take_census(), find(job)))
    assert job.encode() in encoded
    assert SECRET.encode() not in encoded


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="becomes another user")
def test_processes_of_another_user_are_one_absence(start: Start, port: int) -> None:
    started = [start(rank_environment(rank, 2, port)) for rank in range(2)]
    code = """
import os, sys, msgspec
from pardbg.collectors.jobs.census import take_census
from pardbg.collectors.jobs.find import find_world
from pardbg.collectors.jobs.query import JobQuery
from pardbg.watchdog.errors import InputError
sys.stdout.buffer.write(msgspec.json.encode(take_census()))
try:
    find_world(JobQuery(job="torchrun:nothing"))
except InputError as error:
    print(error, file=sys.stderr)
"""
    done = subprocess.run([*BECOME_NOBODY, sys.executable, "-c", code], capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    census = msgspec.json.decode(done.stdout, type=Census)
    assert {process.pid for process in census.processes if process.is_denied} >= set(started)
    assert absences(census.evidence) == [(None, "denied")]
    assert "of uid 0" in str(census.evidence[0].observation)
    assert b"run pardbg as that user or as root" in done.stderr
