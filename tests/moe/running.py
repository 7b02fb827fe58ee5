"""Starts training programs of `jobs/` under the probe, and keeps what they wrote and what the probe counted meanwhile."""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from pardbg.collectors.parsing.routing_lines import parse_routing_lines
from pardbg.collectors.parsing.routing_page import parse_routing_page
from pardbg.collectors.probe import places
from pardbg.watchdog.model.routing import RoutingRow, RoutingSeries
from tests.probe.ranks import DEADLINE_S, Rank, outcome, rank_folders, start_ranks

ROOT = Path(__file__).resolve().parents[2]
POLL_S = 0.05


@dataclass(frozen=True)
class Trained:
    """What is left of a training.

    Attributes:
        folder: holds a folder of JSONL for each scenario, and ``all``: everything by the optimizer's own steps.
        counted: what the probe of each rank has published, by rank.
    """

    folder: Path
    counted: dict[int, RoutingSeries]

    def written(self, name: str) -> list[RoutingSeries]:
        """The reference of each rank, of one scenario or ``all``."""
        files = [self.folder / name / f"routing_rank_{rank}.jsonl" for rank in sorted(self.counted)]
        return [parse_routing_lines(file.read_bytes()).series[None] for file in files]


def train(module: str, words: Sequence[str], rank_count: int, folder: Path) -> Trained:
    """Runs a program of `jobs/` to its end. The routing is read when all has been trained, and before the ranks leave."""
    rank = Rank(words=("-m", f"tests.moe.jobs.{module}", str(folder), *words), env={"PYTHONPATH": str(ROOT)})
    processes = start_ranks([rank] * rank_count, folder, probed=True)
    deadline = time.monotonic() + DEADLINE_S
    while len(list(folder.glob("trained.*"))) < rank_count and all(process.poll() is None for process in processes):
        assert time.monotonic() < deadline, "the training takes too long"
        time.sleep(POLL_S)
    counted = dict(_read(path) for path in rank_folders(folder / "pardbg") if (path / places.ROUTING_FILE).exists())
    (folder / "leave").touch()
    ends = [outcome(process) for process in processes]
    assert [end.code for end in ends] == [0] * rank_count, "\n".join(end.err for end in ends)
    assert sorted(counted) == list(range(rank_count)), "not every rank has a file of routing"
    return Trained(folder, counted)


def _read(folder: Path) -> tuple[int, RoutingSeries]:
    rank = json.loads((folder / places.RANK_FILE).read_bytes())["rank"]
    return rank, parse_routing_page((folder / places.ROUTING_FILE).read_bytes())


def of_steps(series: RoutingSeries, steps: range, become: int) -> tuple[RoutingRow, ...]:
    """The rows of these steps, numbered from ``become`` on."""
    return tuple(replace(row, step=row.step - steps.start + become) for row in series.rows if row.step in steps)
