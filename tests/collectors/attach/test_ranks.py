"""Attaching to real ranks that train, and detaching: nothing is left, nothing is said, every step is right."""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pardbg.collectors.attach import lines
from pardbg.collectors.attach.shooting import shoot
from tests.collectors.attach.ranks import attach_and_detach, training
from tests.collectors.attach.started import started

pytest.importorskip("torch", reason="torch is not installed: pip install 'pardbg[demo]'")
pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(os.uname().machine != "x86_64" or os.geteuid() != 0, reason="shots are for x86_64, as root"),
]


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """Short enough for the name of a socket."""
    with tempfile.TemporaryDirectory(prefix="pardbg-") as name:
        yield Path(name)


@pytest.mark.parametrize("times", [3, pytest.param(100, marks=pytest.mark.slow)])
def test_attach_and_detach_leave_nothing_in_a_rank_that_trains(times: int, short_folder: Path) -> None:
    with training(1) as (target,):
        threads = target.threads
        for _ in range(times):
            attached, detached = attach_and_detach(target.pid, short_folder)
            assert attached.shot is not None, attached
            assert detached.is_done, detached
            assert target.threads == threads
        names = short_folder / "names"
        told = f"import sys; open({str(names)!r}, 'w').write(str([n for n in sys.modules if 'pardbg' in n]))"
        assert shoot(target.pid, f"exec({told!r}, {{}})").is_done
        assert names.read_text() == "[]"
        assert target.end() == (0, "right\n")


@pytest.mark.slow
def test_kills_while_attaching_do_no_harm_to_two_ranks(
    short_folder: Path, record_property: Callable[[str, object], None]
) -> None:
    dice = random.Random(5)
    program = str(Path(__file__).with_name("ranks.py"))
    done = 0
    with training(2) as targets:
        for number in range(200):
            target = targets[number % 2]
            folder = short_folder / str(number % 2)
            folder.mkdir(exist_ok=True)
            command = [sys.executable, program, str(target.pid), str(folder)]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": "."}) as process:
                assert process.stdout is not None
                process.stdout.readline()
                time.sleep(dice.uniform(0, 0.5))
                process.send_signal(signal.SIGKILL)
                done += process.stdout.read().count("Outcome") // 2
        assert [target.process.poll() for target in targets] == [None, None]
        for target in targets:
            assert target.process.stdin is not None
            target.process.stdin.close()
            target.process.stdin = None
        assert [target.end() for target in targets] == [(0, "right\n")] * 2
    record_property("attached_and_detached", done)


@pytest.mark.parametrize("lock", ["free", pytest.param("holding", marks=pytest.mark.slow)])
def test_rank_that_ends_meanwhile_ends_as_it_would_have(lock: str) -> None:
    """Its interpreter waits for the lines: else it would make torch's thread exit, for which C++ ends the process."""
    code = lines._guarded("modules['time'].sleep(1.0)")
    with started("ending.py", lock, "0.7") as target:
        outcome = shoot(target.pid, code)
        assert outcome.shot is not None, outcome
        assert target.end() == (0, "")


HELD = """
import os, sys, tempfile
import torch.distributed as dist
from pardbg.collectors.attach.lines import LOG_LEVEL_HERE, attach_lines
folder = tempfile.mkdtemp()
dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
group = dist.new_group([0], group_desc="mine")
before, seen = sys.getrefcount(group), []
really = os.write
def write(descriptor, data):
    seen.append(sys.getrefcount(group) - before)
    return really(descriptor, data)
os.write = write
exec(attach_lines(folder, 0).replace(LOG_LEVEL_HERE, "0"))
print(seen, open(folder + "/groups.jsonl").read().count('"desc": "mine"'))
dist.destroy_process_group()
"""


def test_lines_hold_no_group_while_others_may_run() -> None:
    """Whoever lets go of a group last has to end it, and its own threads, which are borrowed, cannot."""
    told = subprocess.run([sys.executable, "-c", HELD], capture_output=True, text=True, check=True, timeout=60)
    assert told.stdout == "[0, 0] 1\n", told.stderr
