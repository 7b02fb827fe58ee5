"""Real ranks with and without `pardbg run`, in surroundings that make the probe fail, and with all that training does.

Two runs must be the same from outside: output, errors, exit code, weights. A job has four ranks, each in other surroundings.
Cost: some 3 s of processor time a rank.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pardbg.collectors.probe import page_format, places
from tests.probe.ranks import JOBS, Outcome, Rank, last_step, last_word, outcome, rank_folders, run_ranks, start_ranks

pytest.importorskip("torch", reason="torch is not installed: pip install 'pardbg[demo]'")
pytestmark = pytest.mark.live

STEPS = 30  # of jobs/train_digest.py
TRAIN = str(JOBS / "train_digest.py")
OTHER_PYTHON = "PARDBG_TEST_OLD_TORCH"
HOSTILE = """
import os, sys
sys.excepthook = lambda *_: os._exit(1)
raise ValueError('a sitecustomize of the user')
"""
HOSTILE_PATH = 'PYTHONPATH="${PYTHONPATH:+$PYTHONPATH:}$0" exec "$@"'  # not for `pardbg run` itself
DEADLY = """
import sys
for name in list(sys.modules):
    if name.startswith('_pardbg_probe'):
        del sys.modules[name]
sys.meta_path[:] = [finder for finder in sys.meta_path if '_pardbg' not in type(finder).__module__]
"""
ADDRESS_SPACE = """
import resource, torch.distributed
size = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + (512 << 20), resource.RLIM_INFINITY))
"""
AGAIN = """
import os, sys
if os.environ.pop('AGAIN', None):
    import torch.distributed
    os.execv(sys.executable, [sys.executable, *sys.argv])
"""
FEW_FILES = 'ulimit -n $(( $(ls /proc/self/fd | wc -l) + 20 )); exec "$@"'


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """In place of pytest's: with parallel workers that is too long for the name of a socket."""
    with tempfile.TemporaryDirectory(prefix="harm-") as name:
        yield Path(name)


def mounted(script: str) -> list[str]:
    """A command that runs another after a script of mounts that nobody else sees."""
    return ["unshare", "--mount", "sh", "-e", "-c", f'{script}; exec "$@"', "sh"]


def can_mount() -> bool:
    """Whether this user may have mounts of his own."""
    return (
        os.geteuid() == 0
        and subprocess.run(["/usr/bin/unshare", "--mount", "true"], capture_output=True, check=False).returncode == 0
    )


needs_mounts = pytest.mark.skipif(not can_mount(), reason="mounts of one's own need root")


def assert_same(ranks: list[Rank], folder: Path) -> None:
    """Both runs of a job, one after the other: two at once would only slow each other down."""
    plain, probed = run_ranks(ranks, folder, probed=False), run_ranks(ranks, folder, probed=True)
    assert [rank.code for rank in plain] == [0] * len(ranks), plain
    assert all(f"rank {number} loss" in rank.out for number, rank in enumerate(plain)), plain
    assert probed == plain


@needs_mounts
def test_folder_that_cannot_be_written_full_memory_no_socket_and_hostile_start_change_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "bad"
    for name in (folder, tmp_path / "hostile"):
        name.mkdir()
    (tmp_path / "hostile" / "sitecustomize.py").write_text(HOSTILE)
    read_only = mounted(f"mount --bind {folder} {folder}; mount -o remount,bind,ro {folder}")
    full = mounted(f"mount -t tmpfs -o size=4k tmpfs {folder}; head -c 4096 /dev/zero > {folder}/filler")
    bad = {places.ROOT_VARIABLE: str(folder)}
    assert_same(
        [
            Rank(prefix=read_only, env=bad),
            Rank(prefix=full, env=bad),
            Rank(prefix=[sys.executable, str(JOBS / "refuse_sockets.py")]),
            Rank(python="/bin/sh", words=("-c", HOSTILE_PATH, str(tmp_path / "hostile"), sys.executable, TRAIN)),
        ],
        tmp_path,
    )
    folders = rank_folders(tmp_path / "pardbg")
    assert [(found / places.SERVER_SOCKET).exists() for found in folders] == [False, True]
    assert [last_step(found) for found in folders] == [STEPS, STEPS]
    assert list(folder.iterdir()) == []


@needs_mounts
@pytest.mark.slow
def test_few_descriptors_little_memory_no_shared_memory_and_a_program_that_replaces_itself_change_nothing(
    tmp_path: Path,
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "dev").mkdir()
    own = f"{tmp_path}/dev"
    devices = f"for d in null zero random urandom; do touch {own}/$d; mount --bind /dev/$d {own}/$d; done"
    own_jobs = f"mkdir -p -m 700 /tmp/pardbg-0; mount --bind {tmp_path}/empty /tmp/pardbg-0"
    no_memory = mounted(f"mount -t tmpfs tmpfs {own}; {devices}; {own_jobs}; mount --move {own} /dev")
    assert_same(
        [
            Rank(env={"BEFORE": ADDRESS_SPACE}),
            Rank(prefix=["sh", "-c", FEW_FILES, "sh"]),  # rank 0 needs more for itself
            Rank(prefix=no_memory, env={places.ROOT_VARIABLE: ""}),
            Rank(env={"BEFORE": AGAIN, "AGAIN": "1"}),
        ],
        tmp_path,
    )
    assert [last_step(found) for found in rank_folders(tmp_path / "pardbg")] == [STEPS] * 3


@pytest.mark.slow
def test_files_that_vanish_and_a_root_that_is_no_folder_change_nothing(tmp_path: Path) -> None:
    """Both while it trains. Beside them: a rank as it should be, and one that ends with a code of its own."""
    (tmp_path / "file").touch()
    ranks = [
        Rank(env={"READY_FILE": str(tmp_path / "ready"), "WAIT_FOR": str(tmp_path / "go")}),
        Rank(env={places.ROOT_VARIABLE: str(tmp_path / "file")}),
        Rank(env={places.ROOT_VARIABLE: str(tmp_path / "good")}, words=(TRAIN, "destroy")),
        Rank(env={places.ROOT_VARIABLE: str(tmp_path / "good")}, words=(TRAIN, "3")),
    ]
    outcomes: list[list[Outcome]] = []
    for probed in (False, True):
        processes = start_ranks(ranks, tmp_path, probed=probed)
        while not (tmp_path / "ready").exists() and processes[0].poll() is None:
            time.sleep(0.02)
        shutil.rmtree(tmp_path / "pardbg", ignore_errors=not probed)
        (tmp_path / "go").touch()
        outcomes.append([outcome(process) for process in processes])
        for name in ("ready", "go"):
            (tmp_path / name).unlink()
    plain, seen = outcomes
    assert [rank.code for rank in plain] == [0, 0, 0, 3]
    assert seen == plain
    folders = rank_folders(tmp_path / "good")
    assert [last_step(folder) for folder in folders] == [STEPS, STEPS]
    words = [word for folder in folders if (word := last_word(folder)) is not None]
    assert sorted((word.kind, word.code) for word in words) == [(page_format.END_RETURNED, 0), (page_format.END_RETURNED, 3)]
    assert rank_folders(tmp_path / "pardbg") == []


Word = tuple[int, int] | None
SOME_WAYS: dict[str, Word] = {
    "own_hook": (page_format.END_EXCEPTION, 1),
    "at_once": (page_format.END_AT_ONCE, 7),
    "own_handler": (page_format.END_RETURNED, 5),
    "forked_fault_handler": (page_format.END_RETURNED, 0),
}
OTHER_WAYS: dict[str, Word] = {
    "raise_error": (page_format.END_EXCEPTION, 1),
    "exit_with_text": (page_format.END_RETURNED, 1),
    "exit_in_thread": (page_format.END_RETURNED, 0),
    "terminated": None,
    "interrupted": (page_format.END_EXCEPTION, -1),
    "crashed": None,
    "own_fault_handler": None,
}


@pytest.mark.parametrize("ways", [SOME_WAYS, pytest.param(OTHER_WAYS, marks=pytest.mark.slow)], ids=["some", "others"])
def test_every_end_is_the_same_and_leaves_its_word(tmp_path: Path, ways: dict[str, Word]) -> None:
    """Worlds of one, two at a time."""

    def both(way: str) -> list[Outcome]:
        rank = Rank(words=(str(JOBS / "endings.py"), way), env={places.ROOT_VARIABLE: str(tmp_path / way)})
        return [run_ranks([rank], tmp_path, probed=probed)[0] for probed in (False, True)]

    with ThreadPoolExecutor(2) as pool:
        outcomes = dict(zip(ways, pool.map(both, ways), strict=True))
    assert {way: probed for way, (_, probed) in outcomes.items()} == {way: plain for way, (plain, _) in outcomes.items()}
    folders = {way: rank_folders(tmp_path / way)[0] for way in ways}
    words = {way: last_word(folder) for way, folder in folders.items()}
    assert {way: (word.kind, word.code) if word is not None else None for way, word in words.items()} == ways
    sizes = {
        way: tuple((folder / name).stat().st_size > 0 for name in (places.ENDED_STACKS, places.FATAL_STACKS))
        for way, folder in folders.items()
    }
    said = {"terminated": (True, False), "crashed": (False, True)}
    assert sizes == {way: said.get(way, (False, False)) for way in ways}


@pytest.mark.parametrize(
    "habits", [(), pytest.param(("spawns", "compiled_by_inductor"), marks=pytest.mark.slow)], ids=["quick", "slow"]
)
def test_what_programs_do_beside_training_is_the_same(tmp_path: Path, habits: tuple[str, ...]) -> None:
    rank = Rank(words=(str(JOBS / "habits.py"), *habits))
    (plain,), (probed,) = (run_ranks([rank], tmp_path, probed=probed) for probed in (False, True))
    assert plain.code == 0, plain.err
    assert probed == plain
    folder = rank_folders(tmp_path / "pardbg")[0]
    assert (folder / places.ENDED_STACKS).read_bytes() == b""
    word = last_word(folder)
    assert word is not None
    assert (word.kind, word.code) == (page_format.END_RETURNED, 0)


@pytest.mark.slow
def test_probe_that_is_switched_off_or_removed_does_nothing(tmp_path: Path) -> None:
    """But torch complains of the old name of a variable, which only the probe could have removed."""
    (tmp_path / "sitecustomize.py").write_text(DEADLY)
    ranks = [Rank(env={"PARDBG_PROBE": "0"}), Rank(env={"PYTHONPATH": str(tmp_path)})]
    plain, probed = (run_ranks(ranks, tmp_path, probed=probed) for probed in (False, True))
    complaint = re.compile(r".* is deprecated; use TORCH_FR_.*\n")
    assert [Outcome(rank.code, rank.out, complaint.sub("", rank.err)) for rank in probed] == plain
    assert rank_folders(tmp_path / "pardbg") == []


@pytest.mark.slow
@pytest.mark.skipif(OTHER_PYTHON not in os.environ, reason=f"{OTHER_PYTHON} names no Python with torch 2.4")
def test_old_torch_trains_the_same(tmp_path: Path) -> None:
    rank = Rank(python=os.environ[OTHER_PYTHON], env={"CUDA_VISIBLE_DEVICES": ""})
    assert_same([rank, rank], tmp_path)
    assert [last_step(found) for found in rank_folders(tmp_path / "pardbg")] == [STEPS, STEPS]
