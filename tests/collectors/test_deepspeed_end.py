"""The normal end of DeepSpeed's launcher: only where as many processes have returned as there are ranks."""

from pardbg.collectors.parsing.deepspeed_end import find_deepspeed_end

WORLD = "[2026-11-29 14:00:00,1] [INFO] [launch.py:145:main] WORLD INFO DICT: {'n0': [0, 1], 'n1': [0]}\n"


def _returned(*pids: int) -> str:
    return "".join(f"[2026-11-29 14:30:00,1] [INFO] [launch.py:351:main] Process {pid} exits successfully.\n" for pid in pids)


def test_all_processes_that_returned_are_the_end_of_training() -> None:
    end = find_deepspeed_end(WORLD + "step 1\n" + _returned(71, 72, 73))
    assert end is not None
    assert end.text.endswith("Process 73 exits successfully.")


def test_some_that_returned_tell_nothing_of_the_others() -> None:
    for text in (WORLD + _returned(71, 72), WORLD + _returned(71, 72, 72), _returned(71, 72, 73), WORLD):
        assert find_deepspeed_end(text) is None
