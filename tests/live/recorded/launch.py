"""Runs a planted job until every rank stands still or is gone, keeps the evidence, ends the job."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
from tests.live.recorded.faults import RecordedFault
from tests.live.recorded.names import SEEN_NAME, SIGNAL_PREFIX, Condition, RankSignal
from tests.live.recorded.snapshot import save_job_file, save_logs, save_stacks

from pardbg.watchdog.demo.logs import last_words
from pardbg.watchdog.demo.processes import WORLD_SIZE, Torchrun, running_torchrun

PROGRAM = Path(__file__).with_name("program.py")
DEADLINE_S = 90.0  # 8 s on two idle cores
GRACE_S = 8.0  # for torchrun to notice a rank that has ended, and to end the others
POLL_S = 0.05

Progress = Callable[[str], None]


class RecordingError(Exception):
    """The planted job did not run as planned."""


def run_recorded_job(fault: RecordedFault, folder: Path, progress: Progress) -> None:
    """Starts a job of four ranks with a planted fault and leaves in ``folder`` what is known when it hangs or has ended.

    Nothing of the job is left running, not even after Ctrl-C.

    Raises:
        RecordingError: if a rank wrote no dump in time.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="recorded-") as scratch_name:
        scratch = Path(scratch_name)
        program = (str(PROGRAM), fault.name, str(folder.resolve()), str(scratch))
        progress(f"starting {WORLD_SIZE} ranks: {fault.sentence}")
        with running_torchrun(program, scratch) as launcher:
            signals = _wait_until_settled(launcher, scratch, progress)
            (scratch / SEEN_NAME).touch()
            stack_count = save_stacks(signals, folder)
            save_job_file(f"demo-{fault.name}", signals, scratch, folder)
            save_logs(scratch, folder)
        progress(f"kept {len(signals)} flight recorder dumps and {stack_count} stacks in {folder}")


def _wait_until_settled(launcher: Torchrun, scratch: Path, progress: Progress) -> list[RankSignal]:
    """Waits until torchrun has ended or nothing moves any more."""
    deadline = time.monotonic() + DEADLINE_S
    settled_at: float | None = None
    said = ""
    while time.monotonic() < deadline:
        is_over = launcher.has_ended
        signals = _read_signals(scratch)
        if is_over and len(signals) < WORLD_SIZE:
            break
        said = _say_once(signals, said, progress)
        settled_at = (settled_at or time.monotonic()) if _is_settled(signals) else None
        all_still = all(signal.condition is Condition.STILL for signal in signals)
        if is_over or (settled_at and (all_still or time.monotonic() - settled_at > GRACE_S)):
            return signals
        time.sleep(POLL_S)
    what = "ended before all ranks had started" if launcher.has_ended else f"did not settle in {DEADLINE_S:.0f} s"
    raise RecordingError(f"the planted job {what}: {last_words(scratch)}")


def _is_settled(signals: list[RankSignal]) -> bool:
    return len(signals) == WORLD_SIZE and all(signal.condition is not Condition.MOVING for signal in signals)


def _say_once(signals: list[RankSignal], said: str, progress: Progress) -> str:
    """Reports the ranks' conditions when they have changed."""
    conditions = ", ".join(f"rank {signal.rank} {signal.condition.value}" for signal in signals)
    if conditions and conditions != said:
        progress(conditions)
    return conditions


def _read_signals(scratch: Path) -> list[RankSignal]:
    paths = [scratch / f"{SIGNAL_PREFIX}{rank}" for rank in range(WORLD_SIZE)]
    return [msgspec.json.decode(path.read_bytes(), type=RankSignal) for path in paths if path.exists()]
