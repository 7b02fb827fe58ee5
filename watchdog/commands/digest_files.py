"""What a scan of many nodes would keep of a simulated job: a file of digests a node, and the entries that it would ask for."""

import json
from collections.abc import Iterable
from pathlib import Path

import msgspec

from pardbg.collectors.parsing.job_file import encode_job
from pardbg.collectors.parsing.saved_evidence import encode_evidence
from pardbg.watchdog.bench.simulated_nodes import SimulatedNodes
from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.model.evidence import Evidence, JobDescription
from pardbg.watchdog.model.names import CollectorName
from pardbg.watchdog.scan.entries import add_entries, choose_entries
from pardbg.watchdog.sim.recipe import Recipe
from pardbg.watchdog.sim.truth import Truth
from pardbg.watchdog.sim.write import JOB_FILE, TRUTH_FILE
from pardbg.watchdog.store.sharing import Sharing
from pardbg.watchdog.store.view import EvidenceView


def write_digests(recipe: Recipe, out_dir: Path) -> tuple[Truth, list[Path]]:
    """Writes ``digests_<host>.json`` for every node, ``job.json`` and ``truth.json``; the truth, and the paths written.

    Raises:
        InputError: if the job cannot be simulated.
        OSError: if a file cannot be written.
    """
    simulated, sharing = SimulatedNodes(recipe), Sharing()
    out_dir.mkdir(parents=True, exist_ok=True)
    job = simulated.job.observation
    files = {TRUTH_FILE: json.dumps(msgspec.to_builtins(simulated.truth), indent=1).encode() + b"\n"}
    files |= {JOB_FILE: encode_job(job)} if isinstance(job, JobDescription) else {}
    paths = [_write(out_dir / name, content) for name, content in files.items()]
    digests: list[Evidence] = []
    for host, evidence in simulated.nodes():
        digests += map(sharing.of, evidence)
        recorded = [item for item in evidence if item.source is not CollectorName.HOST]
        paths.append(_write(out_dir / f"digests_{host}.json", _compact(recorded)))
    question = choose_entries(Situation.of(EvidenceView.of([simulated.job, *digests])))
    more = add_entries((), question, simulated.entries(question.wanted), 0)
    return simulated.truth, [*paths, *([_write(out_dir / "entries.json", _compact(more))] if more else [])]


def _compact(evidence: Iterable[Evidence]) -> bytes:
    return msgspec.json.format(encode_evidence(evidence), indent=-1)


def _write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path
