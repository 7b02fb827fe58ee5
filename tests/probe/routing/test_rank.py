"""A job that is started with `pardbg run` has its routing in its folder, without a word in its code."""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pardbg.collectors.parsing.routing_page import parse_routing_page
from tests.probe.ranks import JOBS, Rank, rank_folders, run_ranks

pytestmark = pytest.mark.live


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """Short enough for the name of a socket."""
    with tempfile.TemporaryDirectory(prefix="pardbg-", dir="/tmp") as name:
        yield Path(name)


def test_routing_of_an_unchanged_program_is_published_and_a_switch_turns_it_off(short_folder: Path) -> None:
    words = (str(JOBS / "train_routing.py"),)
    outcomes = run_ranks([Rank(words=words), Rank(words=words, env={"PARDBG_ROUTING": "0"})], short_folder, probed=True)
    assert [outcome.code for outcome in outcomes] == [0, 0], outcomes
    folders = {
        json.loads((folder / "rank.json").read_text())["rank"]: folder for folder in rank_folders(short_folder / "pardbg")
    }
    assert [json.loads((folder / "rank.json").read_text())["problems"] for folder in (folders[0], folders[1])] == [
        [],
        ["PARDBG_ROUTING=0: routing is not counted"],
    ]
    series = parse_routing_page((folders[0] / "routing").read_bytes())
    assert series.names == {0: "layers.0.router", 1: "layers.1.router"}
    assert [row.step for row in series.rows] == [step for step in range(1, 13) for _ in range(2)]
    assert {(sum(row.counts), row.tokens) for row in series.rows} == {(32, 16.0)}
    assert not (folders[1] / "routing").exists()
