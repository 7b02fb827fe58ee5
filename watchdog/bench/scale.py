"""How a scan of many nodes scales: bytes on the way, time and memory of graph and verdict.

``python -m pardbg.watchdog.bench.scale [16,512,...] [FAULT,...]``. The nodes are simulated in another process, so that the
figures are those of the scanner alone.
"""

import multiprocessing
import resource
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection
from statistics import median

import msgspec

from pardbg.watchdog.bench.simulated_nodes import SimulatedNodes
from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.judge.judge import Circumstances, judge
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.evidence import Evidence
from pardbg.watchdog.model.wanted import Cut, Wanted
from pardbg.watchdog.outputs.as_json import render_json
from pardbg.watchdog.scan.entries import add_entries, choose_entries
from pardbg.watchdog.scan.nodes.messages import Seen, decode_reply, encode
from pardbg.watchdog.sim.processes import RANKS_PER_HOST
from pardbg.watchdog.sim.recipe import Recipe
from pardbg.watchdog.sim.truth import Truth
from pardbg.watchdog.store.sharing import Sharing
from pardbg.watchdog.store.view import EvidenceView
from pardbg.watchdog.transport.lines import pack, unpack

SIZES = (16, 512, 4096, 32768)
FAULTS = ("missing-participant", "desync-extra")
ENTRIES = 100
_MOST_BYTES = 64 * 1024**2
_KIB_PER_MB = 1000


class ScaleRow(Noun, frozen=True, kw_only=True):
    """One measurement of ``tool``. Times are of the processor; ``judge_s`` is the final graph and verdict.

    ``ask_s`` is what it takes to find out which entries to ask for; ``bytes_per_rank`` is the median of the nodes, packed.
    ``is_right``: it named the planted ranks.
    """

    tool: str = "pardbg scan"
    fault: str
    ranks: int
    bytes_per_rank: int
    read_s: float
    ask_s: float
    asked: int
    judge_s: float
    peak_mb: int
    json_kb: int
    is_right: bool


class _Told(Noun, frozen=True, kw_only=True):
    """What ends the simulated nodes' samples."""

    job: Evidence
    truth: Truth


def measure_scale(
    progress: Callable[[str], None], sizes: tuple[int, ...] = SIZES, faults: tuple[str, ...] = FAULTS
) -> Iterator[ScaleRow]:
    """Measures every size, the smallest first: the memory is the largest so far."""
    for ranks in sizes:
        for fault in faults:
            progress(f"simulating {ranks} ranks, {fault}")
            yield _measure(Recipe(fault=fault, ranks=ranks, entries=ENTRIES))


def _measure(recipe: Recipe) -> ScaleRow:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    nodes = context.Process(target=_be_the_nodes, args=(there, msgspec.msgpack.encode(recipe)), daemon=True)
    nodes.start()
    there.close()
    try:
        return _scan(here, recipe)
    finally:
        here.close()
        nodes.join()


def _be_the_nodes(there: Connection, recipe: bytes) -> None:
    simulated = SimulatedNodes(msgspec.msgpack.decode(recipe, type=Recipe))
    for _, evidence in simulated.nodes():
        there.send_bytes(pack(encode(Seen(evidence=evidence))))
    there.send_bytes(b"")
    there.send_bytes(msgspec.msgpack.encode(_Told(job=simulated.job, truth=simulated.truth)))
    wanted = msgspec.msgpack.decode(there.recv_bytes(), type=tuple[Wanted, ...])
    there.send_bytes(msgspec.msgpack.encode(simulated.entries(wanted)))


def _scan(here: Connection, recipe: Recipe) -> ScaleRow:
    sharing, evidence, sizes, read_s = Sharing(), list[Evidence](), list[int](), 0.0
    while packed := here.recv_bytes():
        began_s = time.process_time()
        reply = decode_reply(unpack(packed, _MOST_BYTES))
        evidence += map(sharing.of, reply.evidence if isinstance(reply, Seen) else ())
        read_s += time.process_time() - began_s
        sizes.append(len(packed) * 1000 // min(RANKS_PER_HOST, recipe.ranks) // 1000)
    told = msgspec.msgpack.decode(here.recv_bytes(), type=_Told)
    evidence.append(told.job)
    began_s = time.process_time()
    question = choose_entries(Situation.of(EvidenceView.of(evidence)))
    asked_s = time.process_time()
    here.send_bytes(msgspec.msgpack.encode(question.wanted))
    cuts = msgspec.msgpack.decode(here.recv_bytes(), type=tuple[Cut, ...])
    answered_s = time.process_time()
    report = judge(EvidenceView.of(add_entries(evidence, question, cuts, 0)), Circumstances(decided_at="1970-01-01T00:00:00Z"))
    judged_s = time.process_time()
    named = tuple(sorted(subject.rank or 0 for subject in report.verdict.culprits)) if report.verdict else ()
    kind = report.verdict.kind if report.verdict else None
    return ScaleRow(
        fault=recipe.fault,
        ranks=recipe.ranks,
        bytes_per_rank=int(median(sizes)),
        read_s=round(read_s, 2),
        ask_s=round(asked_s - began_s, 2),
        asked=len(question.wanted),
        judge_s=round(judged_s - answered_s, 2),
        peak_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // _KIB_PER_MB,
        json_kb=len(render_json(report)) // 1000,
        is_right=(kind, named) == (told.truth.kind, tuple(sorted(told.truth.culprits))),
    )


def write_rows(rows: Iterable[ScaleRow]) -> Iterator[str]:
    """A table, line by line."""
    yield (
        f"{'fault':<22}{'ranks':>6}{'B/rank':>8}{'read s':>8}{'ask s':>7}{'asked':>7}"
        f"{'judge s':>9}{'peak MB':>9}{'JSON kB':>9}  right"
    )
    for row in rows:
        yield (
            f"{row.fault:<22}{row.ranks:>6}{row.bytes_per_rank:>8}{row.read_s:>8.2f}{row.ask_s:>7.2f}{row.asked:>7}"
            f"{row.judge_s:>9.2f}{row.peak_mb:>9}{row.json_kb:>9}  {'yes' if row.is_right else 'no'}"
        )


def _main(sizes: str = "", faults: str = "") -> None:
    chosen = tuple(map(int, sizes.split(","))) if sizes else SIZES
    rows = measure_scale(lambda _: None, chosen, tuple(faults.split(",")) if faults else FAULTS)
    for line in write_rows(rows):
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _main(*sys.argv[1:])
