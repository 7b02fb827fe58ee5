"""Looking at replicas changes no bit of what is trained. Cost: four processes, some 12 s."""

import os
from pathlib import Path

import pytest

from pardbg.collectors.parsing.page import parse_page
from pardbg.collectors.probe import places
from tests.probe.ranks import JOBS, Rank, rank_folders, run_ranks

pytest.importorskip("torch", reason="torch is not installed: pip install 'pardbg[demo]'")
pytestmark = [pytest.mark.live, pytest.mark.slow]

PATH = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
TRAIN = Rank(words=(str(JOBS / "train_replicas.py"), "steps=70", "accumulate"), env=PATH)
SWITCHED_OFF = Rank(words=TRAIN.words, env={**PATH, "PARDBG_REPLICAS": "0"})


def test_losses_and_weights_are_the_same_and_a_rank_may_have_it_switched_off(tmp_path: Path) -> None:
    plain, probed = (run_ranks([TRAIN, SWITCHED_OFF], tmp_path, probed=probed) for probed in (False, True))
    assert plain == probed
    assert [rank.code for rank in plain] == [0, 0]
    assert all("digest" in rank.out for rank in plain)
    pages = [parse_page([(folder / places.PAGE_FILE).read_bytes()]) for folder in rank_folders(tmp_path / "pardbg")]
    seen = [page.replica for page in pages if page.replica is not None]
    assert [page.step for page in pages] == [70, 70]
    assert [[moment.step for moment in replica.moments] for replica in seen] == [[0, 1, 2, 4, 8, 16, 32, 64]]
