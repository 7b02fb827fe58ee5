"""Writes a simulated job's evidence as the files that `pardbg analyze` reads."""

import json
from pathlib import Path
from typing import Any

import msgspec

from pardbg.watchdog.sim.dump import encode_json, encode_pickle
from pardbg.watchdog.sim.scenario import SimulatedJob

TRUTH_FILE = "truth.json"
JOB_FILE = "job.json"


def write_job(job: SimulatedJob, out_dir: Path) -> list[Path]:
    """Writes dumps, stacks, logs, `job.json` and `truth.json`; returns the paths written."""
    out_dir.mkdir(parents=True, exist_ok=True)
    return [_write(out_dir / name, content) for name, content in encode_files(job).items()]


def encode_files(job: SimulatedJob) -> dict[str, bytes]:
    """The files by name."""
    suffix, encode = (".json", encode_json) if job.recipe.is_json else ("", encode_pickle)
    return {
        **{f"nccl_trace_rank_{rank}{suffix}": encode(dump) for rank, dump in job.dumps.items()},
        **{f"stack_rank{rank}.json": _pretty(stack) for rank, stack in job.stacks.items()},
        **{f"log_rank{rank}.txt": text.encode() for rank, text in job.logs.items()},
        JOB_FILE: _pretty(job.job),
        TRUTH_FILE: _pretty(msgspec.to_builtins(job.truth)),
    }


def _pretty(content: Any) -> bytes:
    return json.dumps(content, indent=1).encode() + b"\n"


def _write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path
