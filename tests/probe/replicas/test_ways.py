"""In many healthy ways to train nothing is found, and in the ill ones what is wrong. Two ranks, one process each.

Cost: 12 s of two processors for all, 6 s for the few that always run.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.probe.ranks import JOBS, free_port

pytest.importorskip("torch", reason="torch is not installed: pip install 'pardbg[demo]'")
pytestmark = pytest.mark.live

DEADLINE_S = 400.0
WELL = {
    "plain": (7, 7),
    "accumulated": (7, 7),
    "zero": (7, 7),
    "one_rank_looks": (4, 4),
    "frozen_and_ignored": (7, 0),
    "local_sgd_by_steps": (0, 0),
    "one_batch": (7, 7),
    "few_batches": (7, 7),
    "strange_data": (7, 0),
}
"""How many moments are compared, and how many batches."""
WELL_TOO = {
    "synchronised_each_pass": (7, 7),
    "static_graph": (7, 7),
    "unused_parameters": (7, 7),
    "uneven_inputs": (6, 6),
    "compressed": (7, 7),
    "power_sgd": (0, 0),
    "local_sgd": (0, 0),
    "silent_hook": (0, 0),
    "one_rank_trains_more": (0, 0),
    "tied": (7, 7),
    "half_precision": (7, 7),
    "ones": (7, 0),
    "growing_ones": (7, 0),
    "copied_and_saved": (7, 7),
    "two_models": (7, 7),
    "compiled_around": (7, 7),
    "compiled_within": (7, 7),
    "evaluated": (7, 7),
    "other_rate": (7, 7),
}
PARTED = {"flipped": [4, 8], "loaded_otherwise": [None, 0]}
ALIKE = ("same_seed", "same_tokens")


def run(*ways: str) -> dict[str, Any]:
    """What is told of each."""
    env = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "MASTER_ADDR": "127.0.0.1", "WORLD_SIZE": "2"}
    root = str(Path(__file__).parents[3])
    env |= {"MASTER_PORT": str(free_port()), "PYTHONPATH": os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), root]))}
    ranks = [
        subprocess.Popen(
            [sys.executable, str(JOBS / "replica_ways.py"), *ways],
            env={**env, "RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in (0, 1)
    ]
    try:
        outputs = [rank.communicate(timeout=DEADLINE_S) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
    assert [rank.returncode for rank in ranks] == [0, 0], outputs
    answer = json.loads(outputs[0][0].splitlines()[-1])
    assert answer["problems"] == []
    told: dict[str, Any] = answer["told"]
    return told


def assert_told(well: dict[str, tuple[int, int]]) -> None:
    """The healthy ways of these, and all ill ones."""
    told = run(*well, *PARTED, *ALIKE)
    assert {way: (found["parted"], found["alike"]) for way, found in told.items()} == {
        **dict.fromkeys(well, (None, [])),
        **{way: (steps, []) for way, steps in PARTED.items()},
        **dict.fromkeys(ALIKE, (None, [[0, 1]])),
    }
    assert {way: (told[way]["compared"], told[way]["with_data"]) for way in well} == well


def test_healthy_ways_to_train_give_nothing_and_ill_ones_what_is_wrong() -> None:
    assert_told(WELL)


@pytest.mark.slow
def test_further_healthy_ways_to_train_give_nothing() -> None:
    assert_told(WELL_TOO)
