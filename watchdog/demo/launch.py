"""Runs a planted job as anybody would, and says when it hangs."""

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pardbg.watchdog.demo.faults import PlantedFault
from pardbg.watchdog.demo.logs import last_words
from pardbg.watchdog.demo.processes import JOB_ID, WORLD_SIZE, Torchrun, running_torchrun
from pardbg.watchdog.errors import PardbgError

PROGRAM = Path(__file__).with_name("train.py")
DEADLINE_S = 90.0  # 6 s on two idle cores
SETTLE_S = 1.0  # twenty steps: the others run into the rank that has stopped
POLL_S = 0.05

Progress = Callable[[str], None]


class DemoError(PardbgError):
    """The planted job did not run as planned."""

    remedy = "try again on a less busy machine, with a newer torch: pip install -U torch"


@contextmanager
def hung_job(fault: PlantedFault, folder: Path, progress: Progress, wrapper: Sequence[str] = ()) -> Iterator[Torchrun]:
    """Starts a job of four ranks with a planted fault and waits until it hangs; without a fault, until it has trained a while.

    A copy of the program stays in ``folder/job``: people can read it there, and its lines count as training code, which those
    of an installed package do not. Nothing else of the job is left after the block, nor if this process ends before.
    ``wrapper`` is a command that starts torchrun.

    Raises:
        DemoError: if the fault does not come in time, or the job ends before.
    """
    program = folder.resolve() / "job" / PROGRAM.name
    program.parent.mkdir()
    shutil.copyfile(PROGRAM, program)
    with tempfile.TemporaryDirectory(prefix="pardbg-demo-") as name:
        scratch = Path(name)
        sign = scratch / "fault_has_come"
        progress(f"starting torchrun with {WORLD_SIZE} ranks, --rdzv-id {JOB_ID}")
        with running_torchrun((str(program), fault.name, str(sign)), scratch, wrapper) as launcher:
            progress(f"waiting: {fault.sentence}")
            _wait_for(sign, launcher, scratch)
            time.sleep(SETTLE_S)
            yield launcher


def _wait_for(sign: Path, launcher: Torchrun, scratch: Path) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not sign.exists():
        if launcher.has_ended:
            raise DemoError(f"the planted job ended before its fault came: {last_words(scratch)}")
        if time.monotonic() > deadline:
            raise DemoError(f"the planted job did not come to its fault in {DEADLINE_S:.0f} s: {last_words(scratch)}")
        time.sleep(POLL_S)
