"""Attaching to real ranks that train, as a scan does: they write, are left as they were, and every step is right."""

import contextlib
import os
import random
import resource
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pardbg.collectors.attach.attaching import attached
from pardbg.collectors.attach.lines import detach_lines
from pardbg.collectors.attach.server_threads import has_server_thread
from pardbg.collectors.attach.shooting import shoot
from pardbg.collectors.live.recorders.reach import reach_recorders
from pardbg.collectors.probe.folder import write_json
from pardbg.collectors.probe.places import memory_root
from pardbg.watchdog.model.evidence import FlightRecording
from pardbg.watchdog.model.names import AbsenceReason
from pardbg.watchdog.model.world import RankProcess, World
from tests.collectors.attach.killing_whole import kill_attaching
from tests.collectors.attach.ranks import answers, as_rank, training
from tests.collectors.attach.started import Target, started
from tests.own_children import are_soon_gone, living_children

pytest.importorskip("torch", reason="torch is not installed: pip install 'pardbg[demo]'")
pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(os.uname().machine != "x86_64" or os.geteuid() != 0, reason="shots are for x86_64, as root"),
]

WITHIN_S = 15.0
OTHER_NAMES = ("rank.json.new", "groups.jsonl.new", "dump_rank_0", "dump_rank_0.new")
NOBODY = 65534
MOUNT, UNMOUNT = shutil.which("mount") or "", shutil.which("umount") or ""
GROUPS = "__import__('torch.distributed.distributed_c10d', fromlist=['_world'])._world.pg_map"
USE_NCCL = f"m = {GROUPS}; old = dict(m); m.update({{g: ('nccl', v[1]) for g, v in old.items()}})"
USE_GLOO = f"m = {GROUPS}; m.update({{g: ('gloo', v[1]) for g, v in m.items()}})"
HOLD = "__import__('ctypes').PyDLL(None).usleep(int({seconds} * 1e6))"


@pytest.fixture(scope="module")
def ranks() -> Iterator[list[Target]]:
    """Two ranks that train during all tests of this module; at the end every step of theirs was right."""
    with training(2) as targets:
        yield targets
        for target in targets:
            assert target.process.stdin is not None
            target.process.stdin.close()
            target.process.stdin = None
        assert [target.end() for target in targets] == [(0, "right\n")] * 2


@pytest.fixture
def root() -> Iterator[Path]:
    """A folder in memory with a name that is short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="at-", dir="/dev/shm") as name:
        yield Path(name)


@pytest.fixture(autouse=True)
def nobody_stays() -> Iterator[None]:
    """No child of ours outlives a test."""
    before = living_children()
    yield
    assert are_soon_gone(before)


def folder_of(rank: RankProcess, root: Path) -> Path:
    return root / f"{rank.pid}-{rank.started_ticks}"


def as_ranks(targets: list[Target], root: Path) -> list[RankProcess]:
    return [as_rank(target, number, root=str(root)) for number, target in enumerate(targets)]


def refusal(rank: RankProcess) -> tuple[AbsenceReason, str]:
    """Why it is not attached to."""
    with attached([rank], time.monotonic() + WITHIN_S) as reached:
        assert not reached.ranks
        absence = reached.refused[rank.rank]
        return absence.reason, absence.detail


def until(holds: Callable[[], bool], within_s: float = 10.0) -> bool:
    until_s = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > until_s:
            return False
        time.sleep(0.005)
    return True


def attach(ranks: list[RankProcess]) -> frozenset[int]:
    with attached(ranks, time.monotonic() + WITHIN_S) as reached:
        return reached.ranks


def test_ranks_write_their_recorder_and_groups_and_are_left_as_they_were(ranks: list[Target], root: Path) -> None:
    wanted, threads = as_ranks(ranks, root), [target.threads for target in ranks]
    files = [len(list(Path(f"/proc/{target.pid}/fd").iterdir())) for target in ranks]
    with attached(wanted, time.monotonic() + WITHIN_S) as reached:
        assert (set(reached.ranks), reached.refused) == ({0, 1}, {})
        for rank in wanted:
            folder = folder_of(rank, root)
            assert sorted(path.name for path in folder.iterdir()) == [f"dump_rank_{rank.rank}", "groups.jsonl", "rank.json"]
            assert [stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.iterdir())] == [0o700, 0o600, 0o600, 0o600]
            assert '"backend": "gloo"' in (folder / "groups.jsonl").read_text()
            assert b"rank.py" in (folder / f"dump_rank_{rank.rank}").read_bytes()
        found = reach_recorders(World(world_size=2, ranks=tuple(wanted)), 0, WITHIN_S, time.time() - 60)
    assert all(isinstance(item.observation, FlightRecording) for item in found), found
    assert list(root.iterdir()) == []
    assert [target.threads for target in ranks] == threads
    assert [len(list(Path(f"/proc/{target.pid}/fd").iterdir())) for target in ranks] == files


@pytest.mark.parametrize("value", ["never", "Never "])
def test_environment_of_a_rank_forbids_it(value: str, ranks: list[Target], root: Path) -> None:
    rank = as_rank(ranks[0], recorder={"PARDBG_DIR": str(root), "PARDBG_ATTACH": value})
    reason, detail = refusal(rank)
    assert reason is AbsenceReason.SWITCHED_OFF
    assert "PARDBG_ATTACH=never" in detail
    assert list(root.iterdir()) == []


def test_rank_in_another_mount_namespace_is_left_alone(ranks: list[Target], root: Path) -> None:
    assert refusal(as_rank(ranks[0], root=str(root), is_at_home=False))[0] is AbsenceReason.UNREACHABLE


def test_folder_that_the_environment_names_by_half_is_not_used(ranks: list[Target]) -> None:
    assert "no absolute path" in refusal(as_rank(ranks[0], root="here"))[1]
    assert not Path("here").exists()


def test_process_that_has_got_the_number_of_a_rank_is_left_alone(ranks: list[Target], root: Path) -> None:
    old = as_rank(ranks[0], root=str(root), started_ticks=5)
    assert refusal(old) == (AbsenceReason.GONE, "its process has ended")
    assert list(root.iterdir()) == []


def test_folder_of_a_probe_is_not_touched(ranks: list[Target], root: Path) -> None:
    rank = as_rank(ranks[0], root=str(root))
    folder = folder_of(rank, root)
    folder.mkdir(mode=0o700)
    write_json(str(folder / "rank.json"), {"schema": "pardbg.rank/1", "rank": 0})
    (folder / "page").write_bytes(b"x")
    assert "it has a probe" in refusal(rank)[1]
    assert sorted(path.name for path in folder.iterdir()) == ["page", "rank.json"]


def test_what_a_killed_scan_has_left_is_replaced(ranks: list[Target], root: Path) -> None:
    rank = as_rank(ranks[0], root=str(root))
    folder = folder_of(rank, root)
    with attached([rank], time.monotonic() + WITHIN_S):
        own = (folder / "rank.json").read_bytes()
    folder.mkdir(mode=0o700)
    for name in ("rank.json", "rank.json.new", "dump_rank_0", "dump_rank_0.new", "groups.jsonl", "groups.jsonl.new"):
        (folder / name).write_bytes(own if name == "rank.json" else b"old")
    with attached([rank], time.monotonic() + WITHIN_S) as reached:
        assert reached.ranks == {0}
        assert b"old" not in [path.read_bytes() for path in folder.iterdir()]
    assert list(root.iterdir()) == []


def _link(path: Path) -> None:
    path.symlink_to("/etc/passwd")


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _huge(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 40)


def _folder(path: Path) -> None:
    path.mkdir()


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))


@pytest.mark.parametrize("make", [_link, _fifo, _huge, _folder, _socket])
def test_hostile_thing_in_the_place_of_the_description_is_refused_and_left(
    make: Callable[[Path], None], ranks: list[Target], root: Path
) -> None:
    rank = as_rank(ranks[0], root=str(root))
    folder = folder_of(rank, root)
    folder.mkdir(mode=0o700)
    make(folder / "rank.json")
    began_s = time.monotonic()
    reason, detail = refusal(rank)
    assert time.monotonic() - began_s < WITHIN_S / 2
    assert reason in {AbsenceReason.SKIPPED, AbsenceReason.DENIED}
    assert detail.startswith("not attached to: ")
    assert os.path.lexists(folder / "rank.json")
    assert [path.name for path in folder.iterdir()] == ["rank.json"]


@pytest.mark.parametrize("make", [_link, _fifo])
@pytest.mark.parametrize("name", ["groups.jsonl", *(pytest.param(name, marks=pytest.mark.slow) for name in OTHER_NAMES)])
def test_hostile_thing_in_the_place_of_another_file_is_not_opened(
    name: str, make: Callable[[Path], None], ranks: list[Target], root: Path
) -> None:
    rank, before = as_rank(ranks[0], root=str(root)), Path("/etc/passwd").read_bytes()
    folder = folder_of(rank, root)
    folder.mkdir(mode=0o700)
    make(folder / name)
    assert attach([rank]) == {0}
    assert Path("/etc/passwd").read_bytes() == before
    assert list(root.iterdir()) == []


@pytest.mark.parametrize("make", [_link, _fifo, _huge, _socket])
def test_hostile_thing_in_the_place_of_the_folder_is_refused_and_left(
    make: Callable[[Path], None], ranks: list[Target], root: Path
) -> None:
    rank = as_rank(ranks[0], root=str(root))
    make(folder_of(rank, root))
    assert refusal(rank)[0] is AbsenceReason.DENIED
    assert os.path.lexists(folder_of(rank, root))


def test_folder_of_another_user_is_refused_and_left(ranks: list[Target], root: Path) -> None:
    rank = as_rank(ranks[0], root=str(root))
    folder_of(rank, root).mkdir()
    os.chown(folder_of(rank, root), NOBODY, NOBODY)
    assert refusal(rank)[0] is AbsenceReason.DENIED
    assert folder_of(rank, root).exists()


def test_root_that_others_may_write_to_is_refused(ranks: list[Target], root: Path) -> None:
    root.chmod(0o777)
    assert refusal(as_rank(ranks[0], root=str(root)))[0] is AbsenceReason.DENIED


def test_folder_without_room_is_left_with_room_for_others(ranks: list[Target], root: Path) -> None:
    """A data loader dies where shared memory is full: what would take more than a quarter of the rest is not written."""
    mounted = subprocess.run([MOUNT, "-t", "tmpfs", "-o", "size=128k", "pardbg-test", str(root)], check=False)
    if mounted.returncode:
        pytest.skip("no mounts here")
    try:
        root.chmod(0o700)
        rank = as_rank(ranks[0], root=str(root))
        (root / "ballast").write_bytes(bytes(96 * 1024))
        free: list[int] = []
        with attached([rank], time.monotonic() + WITHIN_S) as reached:
            assert reached.ranks == {0}
            assert "dump_rank_0" not in [path.name for path in folder_of(rank, root).iterdir()]
            free.append(os.statvfs(root).f_bavail)
        assert free[0] >= 3
        assert [path.name for path in root.iterdir()] == ["ballast"]
    finally:
        subprocess.run([UNMOUNT, str(root)], check=True)


def test_rank_of_another_user_writes_to_a_folder_of_that_user(root: Path) -> None:
    with training(1) as (target,):
        target.run(f"import os, ctypes; os.setgroups([]), os.setgid({NOBODY}), os.setuid({NOBODY})")
        os.chown(root, NOBODY, NOBODY)
        rank = as_rank(target, root=str(root), uid=NOBODY)
        with attached([rank], time.monotonic() + WITHIN_S) as reached:
            assert reached.ranks == {0}, reached.refused
            folder = folder_of(rank, root)
            found = [path.stat() for path in (folder, *folder.iterdir())]
            assert [(one.st_uid, one.st_gid) for one in found] == [(NOBODY, NOBODY)] * 4
            assert [stat.S_IMODE(one.st_mode) for one in found] == [0o700, 0o600, 0o600, 0o600]
        assert (os.geteuid(), list(root.iterdir())) == (0, [])
        assert target.end() == (0, "right\n")


@pytest.mark.slow
def test_rank_that_is_attached_to_by_another_scan_is_left_alone(ranks: list[Target], root: Path) -> None:
    rank = as_rank(ranks[0], root=str(root))
    with attached([rank], time.monotonic() + WITHIN_S):
        assert refusal(rank) == (AbsenceReason.SKIPPED, "not attached to: another pardbg is attached to it at this moment")
        assert (folder_of(rank, root) / "dump_rank_0").exists()
    assert attach([rank]) == {0}


@pytest.mark.parametrize(("number", "word"), [(signal.SIGKILL, "ended"), (signal.SIGSTOP, "been stopped")])
def test_trouble_of_the_first_rank_spares_the_others(number: signal.Signals, word: str, root: Path) -> None:
    with started("first.py", str(int(number))) as first, started("first.py", str(int(number))) as other:
        wanted = as_ranks([first, other], root)
        with attached(wanted, time.monotonic() + WITHIN_S) as reached:
            assert reached.ranks == {0}
            absence = reached.refused[1]
        assert (absence.reason, absence.detail) == (
            AbsenceReason.SKIPPED,
            f"not attached to: rank 0, the first to be, has {word} since",
        )
        assert not folder_of(wanted[1], root).exists()
        if number is signal.SIGSTOP:
            first.process.send_signal(signal.SIGCONT)
            assert first.end()[0] == 0
        assert other.end() == (0, '"over"\n')
    assert list(root.iterdir()) == []


def test_rank_whose_interpreter_lock_is_held_is_told_late_and_writes_nothing_afterwards(
    ranks: list[Target], root: Path
) -> None:
    rank, threads = as_rank(ranks[0], root=str(root)), ranks[0].threads
    ranks[0].run(HOLD.format(seconds=4), is_awaited=False)
    time.sleep(0.1)
    reason, detail = refusal(rank)
    assert (reason, "interpreter lock is held" in detail) == (AbsenceReason.TIMED_OUT, True)
    ranks[0].wait_until_told()
    assert until(lambda: attach([rank]) == {0})
    assert until(lambda: ranks[0].threads == threads)
    assert list(root.iterdir()) == []


def test_time_that_is_up_leaves_nothing(ranks: list[Target], root: Path) -> None:
    rank = as_rank(ranks[0], root=str(root))
    with attached([rank], time.monotonic()) as reached:
        assert reached.refused[0].reason is AbsenceReason.TIMED_OUT
    assert list(root.iterdir()) == []


def _leave_server(rank: RankProcess, root: Path) -> None:
    """Ends a server that was kept, as a later scan would."""
    assert until(lambda: shoot(rank.pid, detach_lines()).is_done and not has_server_thread(rank.pid))
    with contextlib.suppress(FileNotFoundError):
        for path in folder_of(rank, root).iterdir():
            path.unlink()
        folder_of(rank, root).rmdir()


def test_kept_server_answers_a_later_scan_and_a_later_detach_ends_it(ranks: list[Target], root: Path) -> None:
    rank, threads = as_rank(ranks[0], root=str(root)), ranks[0].threads
    with attached([rank], time.monotonic() + WITHIN_S) as reached:
        assert reached.keep(time.monotonic() + WITHIN_S) == (0,)
    assert has_server_thread(rank.pid)
    assert sorted(path.name for path in folder_of(rank, root).iterdir()) == ["groups.jsonl", "rank.json", "server.sock"]
    (item,) = reach_recorders(World(world_size=2, ranks=(rank,)), 0, WITHIN_S, time.time())
    assert isinstance(item.observation, FlightRecording)
    assert "server.sock" in item.origin
    _leave_server(rank, root)
    assert ranks[0].threads == threads


@pytest.fixture
def nccl_rank(ranks: list[Target], root: Path) -> Iterator[RankProcess]:
    """A rank whose groups say that their back end is NCCL."""
    ranks[0].run(USE_NCCL)
    yield as_rank(ranks[0], root=str(root))
    ranks[0].run(USE_GLOO)


def test_rank_that_uses_nccl_serves_until_it_is_left(ranks: list[Target], nccl_rank: RankProcess, root: Path) -> None:
    threads = ranks[0].threads
    for _ in range(3):
        with attached([nccl_rank], time.monotonic() + WITHIN_S) as reached:
            assert reached.answers[0].is_serving
            assert ranks[0].threads == threads + 9
            assert answers(nccl_rank.pid, folder_of(nccl_rank, root))
            assert not (folder_of(nccl_rank, root) / "dump_rank_0").exists()
            blocked = _blocked_by_server(nccl_rank.pid)
        assert ranks[0].threads == threads
        assert list(root.iterdir()) == []
        assert blocked & 1 << (signal.SIGTERM - 1)


def _blocked_by_server(pid: int) -> int:
    """The signals that one of the server's threads leaves to others."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        if (task / "comm").read_text().strip() == "pt_workerserver":
            lines = (task / "status").read_text().splitlines()
            return int(next(line.split()[1] for line in lines if line.startswith("SigBlk")), 16)
    raise AssertionError


@pytest.mark.slow
def test_server_that_is_at_work_is_not_ended(ranks: list[Target], nccl_rank: RankProcess, root: Path) -> None:
    """Its end would be waited for with the interpreter lock held, for as long as that takes."""
    threads, path = ranks[0].threads, folder_of(nccl_rank, root) / "server.sock"
    with socket.socket(socket.AF_UNIX) as client:
        with attached([nccl_rank], time.monotonic() + WITHIN_S) as reached:
            assert reached.answers[0].is_serving
            client.connect(str(path))
            client.sendall(b"POST /handler/ping HTTP/1.1\r\n")
            time.sleep(0.2)
        began_s = time.monotonic()
        ranks[0].run("pass")
        assert time.monotonic() - began_s < 1.0
        assert has_server_thread(nccl_rank.pid)
        assert path.exists()
    assert until(lambda: shoot(nccl_rank.pid, detach_lines()).is_done and not has_server_thread(nccl_rank.pid))
    with attached([nccl_rank], time.monotonic() + WITHIN_S) as reached:  # its socket is still there
        assert reached.answers[0].is_serving
    assert until(lambda: (ranks[0].threads, list(root.iterdir())) == (threads, []))


def test_thread_limit_is_seen_before_torch_would_end_the_process(
    ranks: list[Target], nccl_rank: RankProcess, root: Path
) -> None:
    group, home = Path("/sys/fs/cgroup/pids/pardbg-test-attach"), Path("/sys/fs/cgroup/pids/cgroup.procs")
    if not home.exists():
        pytest.skip("no pids controller (v1) here")
    threads = ranks[0].threads
    group.mkdir(exist_ok=True)
    try:
        (group / "cgroup.procs").write_text(str(nccl_rank.pid))
        (group / "pids.max").write_text(str(threads + 6))
        with attached([nccl_rank], time.monotonic() + WITHIN_S) as reached:
            assert (set(reached.ranks), reached.answers[0].is_serving) == ({0}, False)
    finally:
        home.write_text(str(nccl_rank.pid))
        assert until(lambda: not (group / "cgroup.procs").read_text())
        group.rmdir()
    assert until(lambda: (ranks[0].threads, list(root.iterdir())) == (threads, []))


def test_rank_with_limited_address_space_gets_no_server(ranks: list[Target], nccl_rank: RankProcess, root: Path) -> None:
    threads = ranks[0].threads
    before = resource.prlimit(nccl_rank.pid, resource.RLIMIT_AS, (1 << 40, -1))
    try:
        with attached([nccl_rank], time.monotonic() + WITHIN_S) as reached:
            assert (set(reached.ranks), reached.answers[0].is_serving) == ({0}, False)
    finally:
        resource.prlimit(nccl_rank.pid, resource.RLIMIT_AS, before)
    assert (ranks[0].threads, list(root.iterdir())) == (threads, [])


def test_child_leaves_when_pardbg_was_killed(ranks: list[Target], nccl_rank: RankProcess, root: Path) -> None:
    threads, folder = ranks[0].threads, folder_of(nccl_rank, root)
    child = os.fork()
    if not child:
        with contextlib.suppress(BaseException), attached([nccl_rank], time.monotonic() + WITHIN_S):
            time.sleep(WITHIN_S)
        os._exit(0)
    try:
        assert until((folder / "server.sock").exists)
        assert answers(nccl_rank.pid, folder)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert until(lambda: (ranks[0].threads, list(root.iterdir())) == (threads, []))


INTERRUPTED = """
import sys, time
from pathlib import Path
from pardbg.collectors.attach.attaching import attached
from tests.collectors.attach.killing_whole import kill_attaching
from tests.collectors.attach.ranks import as_rank
from tests.collectors.attach.started import Target
from types import SimpleNamespace
ranks = [as_rank(Target(SimpleNamespace(pid=int(pid))), number, root=sys.argv[1]) for number, pid in enumerate(sys.argv[2:])]
try:
    print("ready", flush=True)
    with attached(ranks, time.monotonic() + 15):
        time.sleep(15)
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize("after_s", [0.2, pytest.param(0.0, marks=pytest.mark.slow), pytest.param(0.8, marks=pytest.mark.slow)])
def test_ctrl_c_ends_the_waiting_and_leaves_nothing(after_s: float, ranks: list[Target], root: Path) -> None:
    """Ctrl-C reaches all processes of the terminal's group."""
    threads = [target.threads for target in ranks]
    command = [sys.executable, "-c", INTERRUPTED, str(root), *(str(target.pid) for target in ranks)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, process_group=0, env=_paths()) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(after_s)
        os.killpg(process.pid, signal.SIGINT)
        assert process.communicate(timeout=5)[0] == "interrupted\n"
    assert until(lambda: list(root.iterdir()) == [])
    assert [target.threads for target in ranks] == threads
    assert attach(as_ranks(ranks, root)) == {0, 1}


def _paths() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(["src", ".", *sys.path[1:]])}


def test_kills_of_a_process_that_attaches_and_of_its_child_do_no_harm(ranks: list[Target], root: Path) -> None:
    """One of both, or both. 2,000 of them are in `test_kills.py`."""
    wanted = as_ranks(ranks, root)
    told = kill_attaching(wanted, root, 7, random.Random(1))
    assert (told["kills"], told["left threads"], told["killed the rank"]) == (7, 0, 0)
    assert attach(wanted) == {0, 1}
    assert list(root.iterdir()) == []


def test_killed_scans_leave_nothing(ranks: list[Target]) -> None:
    """Whole process groups of `pardbg scan`; that every step was right is seen when the ranks end."""
    rank, threads = as_rank(ranks[0]), [target.threads for target in ranks]
    folders = [folder_of(as_rank(target), Path(memory_root(0, {}))) for target in ranks]
    command = [sys.executable, "-m", "pardbg", "scan", "--pid", str(rank.pid), "--attach", "always", "--interval", "0.2"]
    for after_s in (0.4, 1.1, 1.5):
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, process_group=0) as scan:
            time.sleep(after_s)
            os.killpg(scan.pid, signal.SIGKILL)
    assert until(lambda: not any(folder.exists() for folder in folders))
    assert [target.threads for target in ranks] == threads


ORDINARY = """
import sys, time
from pardbg.collectors.attach.attaching import attached
from tests.collectors.attach.killing_whole import kill_attaching
from tests.collectors.attach.ranks import as_rank
from tests.collectors.attach.started import Target
from types import SimpleNamespace
for pid in sys.argv[2:]:
    rank = as_rank(Target(SimpleNamespace(pid=int(pid))), root=sys.argv[1])
    with attached([rank], time.monotonic() + 10) as reached:
        print(sorted(reached.ranks), *(f"{one.reason.value} {one.detail}" for one in reached.refused.values()))
"""


@pytest.mark.slow
def test_who_is_not_root_attaches_to_his_own_job_and_to_nobody_elses(ranks: list[Target], root: Path) -> None:
    python = f"/usr/bin/python3.{sys.version_info.minor}"
    prefix = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    if (
        not Path(python).exists()
        or subprocess.run([*prefix, python, "-c", "import pardbg, msgspec"], env=_paths(), check=False).returncode
    ):
        pytest.skip("no interpreter and code that everybody may read")
    os.chown(root, NOBODY, NOBODY)
    first = str(Path(__file__).with_name("targets") / "first.py")
    with started(python, first, "0", prefix=prefix) as own:
        command = [*prefix, python, "-c", ORDINARY, str(root), str(own.pid), str(ranks[0].pid)]
        told = subprocess.run(command, env=_paths(), capture_output=True, text=True, check=True).stdout.splitlines()
        assert own.end() == (0, '"over"\n')
    assert told[0] == "[0]"
    assert told[1] == "[] denied not attached to: its process belongs to user 0: run pardbg as root"
    assert list(root.iterdir()) == []


SLOW_DUMP = """
import os, time
import torch._C._distributed_c10d as bindings
bindings.real = bindings._dump_fr_trace
bindings._dump_fr_trace = lambda **_: (open({said!r}, 'w').close(), time.sleep(1.5))
"""
USE_DURING = """
import os, threading, time, torch
def use():
    while not os.path.exists({said!r}):
        time.sleep(0.001)
    a, b = torch._inductor, torch._inductor.config
    import torch._inductor.utils as d
    from torch import _inductor as c
    open({said!r}, 'w').write(str((type(a).__name__, b.__name__, a.config is c.config is b, d.__name__)))
threading.Thread(target=use).start()
"""
LOOK = """
import sys, torch
said = "torch._inductor" in sys.modules, type(vars(torch).get("_inductor")).__name__
open({said!r}, 'w').write(str(said))
"""


@pytest.mark.slow
def test_torchs_compiler_is_not_imported_and_is_there_for_others_all_the_while(root: Path) -> None:
    """A dump that takes long, beside a thread that imports and uses the compiler."""
    said = root / "said"

    def told(lines: str) -> str:
        target.run(f"exec({lines.format(said=str(said))!r}, {{}})")
        return said.read_text()

    with training(1) as (target,):
        rank = as_rank(target, root=str(root))
        assert attach([rank]) == {0}
        assert told(LOOK) == "(False, 'NoneType')"
        said.unlink()
        for lines in (USE_DURING, SLOW_DUMP):
            target.run(f"exec({lines.format(said=str(said))!r}, {{}})")
        attach([rank])
        assert until(lambda: said.read_text() != "", 30)
        assert said.read_text() == "('NoCompiler', 'torch._inductor.config', True, 'torch._inductor.utils')"
        assert told(LOOK) == "(True, 'module')"
        target.run("import torch._C._distributed_c10d as b; b._dump_fr_trace = b.real")
        assert attach([rank]) == {0}
        assert told(LOOK) == "(True, 'module')"
        said.unlink()
        assert target.end() == (0, "right\n")
