"""Real shots at small processes: whatever the borrowed thread was doing goes on as if nothing had been."""

import os
import sys
import time
from pathlib import Path

import pytest

from pardbg.collectors.attach.shooting import shoot
from tests.collectors.attach.started import COMPILER, compiled, started

pytestmark = [
    pytest.mark.skipif(os.uname().machine != "x86_64" or os.geteuid() != 0, reason="shots are for x86_64, as root"),
]

WITHIN_S = 0.1
SECONDS = 0.8
CALLS = {
    "nanosleep": ("0", "clock_nanosleep"),
    "python_sleep": ("None", "clock_nanosleep"),
    "sleep_keeping_rest": ("0", "clock_nanosleep"),
    "poll": ("0", "poll"),
    "epoll": ("0", "epoll_wait"),
    "select_": ("0", "pselect6"),
    "timed_lock": ("0", "futex"),
    "lock": ("1", "futex"),
    "futex": ("-1", "futex"),
    "recv": ("1", "recvfrom"),
    "accept": ("1", "accept4"),
    "read": ("3", "read"),
    "wait4": ("5", "wait4"),
    "holding": ("0", "clock_nanosleep"),
}
OTHERS = [Path(f"/root/.pyenv/versions/{version}/bin/python") for version in ("3.10.13", "3.12.1", "3.13.0")]
CODE = "import os; [[] for _ in range(5000)]; os.stat('/'); open({path!r}, 'a').close()"


def _fired_in_time(python: str, call: str, folder: Path) -> tuple[str, float, str, str]:
    """The first of three tries that is not late: others may use the machine. None may be early."""
    for _ in range(3):
        fired = _fired_at(python, call, folder)
        assert fired[1] >= SECONDS - 0.005
        if fired[1] < SECONDS + WITHIN_S:
            break
    return fired


def _fired_at(python: str, call: str, folder: Path) -> tuple[str, float, str, str]:
    """Result, time and threads that the target tells of; the call that was borrowed."""
    shot_file = folder / "ran"
    with started(python, "-W", "ignore", str(Path(__file__).with_name("targets") / "parked.py"), call, str(SECONDS)) as target:
        time.sleep(SECONDS / 2)
        threads = target.threads
        outcome = shoot(target.pid, CODE.format(path=str(shot_file)))
        assert outcome.shot is not None, outcome
        assert outcome.is_done
        assert target.threads == threads
        code, words = target.end()
    assert code == 0, words
    assert shot_file.exists()
    name, result, took, *rest = words.split()
    assert name == call
    return result, float(took), " ".join(rest), outcome.shot.look.call


@pytest.mark.parametrize("call", CALLS)
def test_call_that_was_borrowed_gives_the_right_result_at_the_right_time(call: str, tmp_path: Path) -> None:
    result, took_s, threads, borrowed = _fired_in_time(sys.executable, call, tmp_path)
    assert (result, borrowed) == CALLS[call]
    assert took_s < SECONDS + WITHIN_S
    assert threads == "threads 1"


@pytest.mark.parametrize("python", OTHERS, ids=lambda path: path.parts[-3])
@pytest.mark.parametrize("call", ["lock", *(pytest.param(call, marks=pytest.mark.slow) for call in ("poll", "holding"))])
def test_other_versions_of_python_are_shot_at_alike(python: Path, call: str, tmp_path: Path) -> None:
    if not python.exists():
        pytest.skip(f"no {python}")
    result, took_s, threads, _ = _fired_in_time(str(python), call, tmp_path)
    assert result == CALLS[call][0]
    assert took_s < SECONDS + WITHIN_S
    assert threads == "threads 1"


@pytest.mark.skipif(COMPILER is None or "avx2" not in Path("/proc/cpuinfo").read_text(), reason="needs cc and AVX")
def test_vector_registers_rounding_errno_signal_mask_and_alternate_stack_are_intact(tmp_path: Path) -> None:
    library = compiled("park", tmp_path, "-mavx2")
    code = f"import ctypes, threading; park = ctypes.CDLL({str(library)!r}).park\n"
    code += "thread = threading.Thread(target=lambda: print('wrong', park(2000)))\nprint('ready', flush=True)\nthread.start()"
    lines = "import os\nfor _ in range(20):\n  try: os.stat('/nowhere')\n  except OSError: 1.5 ** 0.5"
    with started(sys.executable, "-c", code) as target:
        target.wait_for_call(7)
        outcome = shoot(target.pid, f"exec({lines!r}, {{}})")
        assert outcome.is_done, outcome
        assert target.end() == (0, "wrong 0\n")


def test_shots_into_counting_threads_do_no_harm() -> None:
    with started("counting.py") as target:
        outcomes = [shoot(target.pid, "[[] for _ in range(1000)]") for _ in range(10)]
        assert sum(outcome.is_done for outcome in outcomes) >= 8, outcomes
        assert target.end() == (0, "right\n")


def test_interpreter_whose_file_was_replaced_is_still_known(tmp_path: Path) -> None:
    """As in a container, whose files are others under the same names."""
    python = Path("/usr/bin/python3").resolve()
    if not python.exists() or python.name not in {"python3.10", "python3.11", "python3.12", "python3.13"}:
        pytest.skip("no python of the system")
    own = tmp_path / python.name
    own.write_bytes(python.read_bytes())
    own.chmod(0o755)
    with started(str(own), str(Path(__file__).with_name("targets") / "parked.py"), "poll", "0.8") as target:
        time.sleep(0.3)
        own.unlink()
        own.write_bytes(b"something else")
        assert shoot(target.pid, "1").is_done
        assert target.end()[0] == 0


def test_target_in_other_namespaces_is_shot_at(tmp_path: Path) -> None:
    prefix = ["unshare", "--pid", "--mount", "--fork", "--mount-proc", "--kill-child"]
    with started("parked.py", "poll", "0.8", prefix=prefix) as target:
        time.sleep(0.4)
        (inner,) = Path(f"/proc/{target.pid}/task/{target.pid}/children").read_text().split()
        outcome = shoot(int(inner), f"open({str(tmp_path / 'ran')!r}, 'w').close()")
        assert outcome.is_done, outcome
        assert target.end()[0] == 0
    assert (tmp_path / "ran").exists()


def test_kills_in_mid_shot_do_no_harm() -> None:
    with started(
        sys.executable,
        "-u",
        str(Path(__file__).with_name("killing.py")),
        "15",
        prefix=["sh", "-c", 'echo ready; exec "$@"', "-"],
    ) as run:
        code, words = run.end()
    assert code == 0, words


@pytest.mark.slow
def test_two_thousand_kills_in_mid_shot_do_no_harm() -> None:
    with started(
        sys.executable,
        "-u",
        str(Path(__file__).with_name("killing.py")),
        "2000",
        prefix=["sh", "-c", 'echo ready; exec "$@"', "-"],
    ) as run:
        out, _ = run.process.communicate(timeout=1800)
    assert run.process.returncode == 0, out
