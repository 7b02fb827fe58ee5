"""The launcher says what goes wrong and leaves nothing behind."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.live.recorded.faults import FAULTS, RecordedFault, fault_named
from tests.live.recorded.launch import RecordingError, run_recorded_job

pytestmark = pytest.mark.live


@pytest.mark.parametrize("fault_name", [fault.name for fault in FAULTS])
def test_job_leaves_no_process_behind(planted_job: Callable[[str], Path], fault_name: str) -> None:
    assert processes_that_name(planted_job(fault_name)) == []


def test_interrupted_launch_leaves_no_process_behind(tmp_path: Path) -> None:
    seen: list[list[int]] = []

    def interrupt_once_ranks_train(line: str) -> None:
        if "moving" in line:
            seen.append(processes_that_name(tmp_path))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_recorded_job(fault_named("left-early"), tmp_path, interrupt_once_ranks_train)

    assert len(seen[0]) == 5  # torchrun and its ranks
    assert processes_that_name(tmp_path) == []


def test_program_that_cannot_start_is_explained_in_its_own_words(tmp_path: Path) -> None:
    fault = RecordedFault(name="unknown", sentence="no program has this name", kind=None, culprits=())

    with pytest.raises(RecordingError, match=r"ended before all ranks had started: KeyError: 'unknown'"):
        run_recorded_job(fault, tmp_path, lambda _line: None)

    assert processes_that_name(tmp_path) == []


def processes_that_name(folder: Path) -> list[int]:
    """The processes with the folder on their command line."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if str(folder).encode() in command:
            found.append(int(path.parent.name))
    return found
