"""Builds flight-recorder dumps of every back end and version, small enough to read in a test."""

import json
import pickle
from collections.abc import Iterable
from typing import Any

Entry = dict[str, Any]

FRAMES = [
    {"name": "all_reduce", "filename": "/site/torch/distributed/distributed_c10d.py", "line": 2810},
    {"name": "train_step", "filename": "/app/train.py", "line": 41},
]


def make_entry(number: int, **changes: Any) -> Entry:
    """One completed NCCL all_reduce of the default group, format 2.10; ``changes`` overrides keys, ``...`` removes one."""
    entry: Entry = {
        "frames": FRAMES,
        "record_id": number,
        "pg_id": 0,
        "process_group": ("0", "default_pg"),
        "thread_name": "python",
        "thread_id": "23437663053504",
        "collective_seq_id": number + 1,
        "p2p_seq_id": 0,
        "op_id": number + 1,
        "profiling_name": "nccl:all_reduce",
        "time_created_ns": 1_700_000_000_000_000_000 + number * 1_000_000,
        "input_sizes": [[1024, 8]],
        "input_dtypes": ["Float"],
        "output_sizes": [[1024, 8]],
        "output_dtypes": ["Float"],
        "state": "completed",
        "time_discovered_started_ns": None,
        "time_discovered_completed_ns": 1_700_000_000_000_000_000 + number * 1_000_000 + 500,
        "retired": True,
        "timeout_ms": 600_000,
        "is_p2p": False,
    }
    entry.update(changes)
    return {key: value for key, value in entry.items() if value is not ...}


def outstanding(number: int, **changes: Any) -> Entry:
    """An entry that was enqueued and has not finished."""
    return make_entry(number, **{"state": "scheduled", "time_discovered_completed_ns": None, "retired": False, **changes})


def gloo(number: int, *, is_retired: bool, **changes: Any) -> Entry:
    """A gloo entry: ``scheduled`` for ever."""
    return outstanding(number, **{"profiling_name": "gloo:all_reduce", "retired": is_retired, **changes})


def make_dump(entries: Iterable[Entry], **changes: Any) -> dict[str, Any]:
    """A dump of format 2.10 around ``entries``; ``changes`` overrides keys, ``...`` removes one."""
    dump: dict[str, Any] = {
        "version": "2.10",
        "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}},
        "comm_lib_version": "2.27.3",
        "pg_status": {},
        "entries": list(entries),
    }
    dump.update(changes)
    return {key: value for key, value in dump.items() if value is not ...}


def pickled(dump: Any, protocol: int = 2) -> bytes:
    return pickle.dumps(dump, protocol=protocol)


def as_json(dump: dict[str, Any]) -> bytes:
    return json.dumps(dump).encode()


def write_ring(count: int, *, sites: int = 10) -> bytes:
    """A long ring, quickly: ``count`` entries that share ``sites`` call sites, in C++'s shape (one flat list)."""
    frames = [[{**frame, "line": 100 + site} for frame in FRAMES * 4] for site in range(sites)]
    return pickled(make_dump(make_entry(number, frames=frames[number % sites]) for number in range(count)))
