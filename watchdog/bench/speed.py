"""How `pardbg analyze` scales, and how torchfrtrace (PyTorch's own analyser) does on the same files."""

import importlib.util
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from pardbg.watchdog.bench.process_tree import Measurement, measure
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.sim.recipe import Recipe
from pardbg.watchdog.sim.scenario import simulate
from pardbg.watchdog.sim.write import write_job

SIZES = ((16, 2000), (32, 2000), (64, 500), (64, 1000), (64, 2000))
FAULT = "missing-participant"
PEER_MODULE = "torch.distributed.flight_recorder.fr_trace"
DUMP_PREFIX = "nccl_trace_rank_"
MISSING_RANKS = re.compile(r"missing ranks: \{([^}]*)\}")
BYTES_PER_MB = 1_000_000


class Row(Noun, frozen=True, kw_only=True):
    """One measurement: ``tool`` on ``ranks`` dumps of ``entries`` entries each. ``is_right``: it named the planted rank."""

    tool: str
    ranks: int
    entries: int
    wall_s: float
    peak_mb: float
    is_right: bool


def measure_speed(progress: Callable[[str], None]) -> Iterator[Row]:
    """Measures every size with pardbg, and the largest with torchfrtrace where torch is installed."""
    for ranks, entries in SIZES:
        with tempfile.TemporaryDirectory(prefix="pardbg-bench-") as folder:
            progress(f"simulating {ranks} ranks with {entries} entries")
            job = simulate(Recipe(fault=FAULT, ranks=ranks, entries=entries))
            write_job(job, Path(folder))
            (culprit,) = job.truth.culprits
            progress(f"pardbg analyze: {ranks} ranks with {entries} entries")
            yield _pardbg(folder, ranks, entries, culprit)
            if (ranks, entries) == SIZES[-1] and importlib.util.find_spec("torch") is not None:
                progress(f"torchfrtrace: {ranks} ranks with {entries} entries")
                yield _torchfrtrace(folder, ranks, entries, culprit)


def _pardbg(folder: str, ranks: int, entries: int, culprit: int) -> Row:
    run = measure([sys.executable, "-m", "pardbg", "analyze", folder, "--json"])
    verdict = json.loads(run.stdout)["verdict"] if run.stdout else None
    named = [subject["rank"] for subject in verdict["culprits"]] if verdict else []
    return _row("pardbg", (ranks, entries), run, is_right=named == [culprit])


def _torchfrtrace(folder: str, ranks: int, entries: int, culprit: int) -> Row:
    """Its report is text on standard error; right means that every rank it calls missing is the culprit."""
    script = f"import sys; sys.stderr = sys.stdout; import runpy; runpy.run_module({PEER_MODULE!r}, run_name='__main__')"
    run = measure([sys.executable, "-c", script, folder, "-p", DUMP_PREFIX])
    named = {rank for ranks_text in MISSING_RANKS.findall(run.stdout) for rank in ranks_text.split(", ")}
    return _row("torchfrtrace", (ranks, entries), run, is_right=named == {str(culprit)})


def _row(tool: str, size: tuple[int, int], run: Measurement, *, is_right: bool) -> Row:
    return Row(
        tool=tool,
        ranks=size[0],
        entries=size[1],
        wall_s=round(run.wall_s, 2),
        peak_mb=round(run.peak_bytes / BYTES_PER_MB, 1),
        is_right=is_right,
    )
