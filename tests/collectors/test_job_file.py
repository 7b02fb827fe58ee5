"""job.json, whole and damaged."""

import json

import pytest

from pardbg.collectors.parsing.job_file import parse_job
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.evidence import JobDescription, RankDescription


def test_process_is_flattened_and_damaged_ranks_are_dropped() -> None:
    ranks = [
        {"rank": 1, "host": "b", "pid": 9, "local_rank": 0, "process": {"state": "gone", "exit_code": -9}},
        {"rank": "two"},
        17,
        {"rank": -1},
        {"rank": 0, "gpu_uuid": "GPU-1", "pci_bus_id": "1b", "process": None, "extra": {}},
        {"rank": 1, "host": "again"},
    ]
    data = json.dumps({"job": 12, "world_size": 2, "ranks": ranks, "sampled_at": "2026-01-01T00:00:00Z"}).encode()
    assert parse_job(data) == JobDescription(
        job="12",
        world_size=2,
        ranks=(
            RankDescription(rank=0, gpu_uuid="GPU-1", pci_bus_id="1b"),
            RankDescription(rank=1, host="b", pid=9, local_rank=0, state="gone", exit_code=-9),
        ),
        sampled_at="2026-01-01T00:00:00Z",
    )


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"ranks": 3}', b'{"job": "x", "ranks": [', b"\xff{"])
def test_anything_else_is_refused(data: bytes) -> None:
    with pytest.raises(ParseError):
        parse_job(data)
