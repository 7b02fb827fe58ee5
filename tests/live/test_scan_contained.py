"""A prepared job in a container, scanned from outside: its own mount and pid namespaces, and its own /dev/shm."""

import os
import shutil
import sys
from pathlib import Path

import pytest
from tests.live.running import running_job
from tests.live.scanning import Scan

from pardbg.collectors.jobs.find import find_world
from pardbg.collectors.jobs.query import JobQuery
from pardbg.collectors.probe.places import memory_root, rank_folder
from pardbg.collectors.vitals.patient import Patient

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(os.geteuid() != 0 or shutil.which("unshare") is None, reason="makes namespaces"),
]

JOB = "contained"
CONTAINER = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
SHELL = ["sh", "-c", 'mount -t tmpfs tmpfs /dev/shm && exec "$@"', "sh"]
PREFIX = [*CONTAINER, *SHELL, sys.executable, "-m", "pardbg", "run", "--job", JOB, "--"]


def test_recorders_pages_and_sources_of_a_container_are_read_from_outside(tmp_path: Path) -> None:
    with running_job("train", "--fault", "checkpoint", folder=tmp_path, ranks=3, prefix=PREFIX) as running:
        running.wait_until_hung()
        ranks = find_world(JobQuery(job=JOB)).world.ranks
        assert [rank.is_at_home for rank in ranks] == [False] * 3
        assert all(rank.own_pid < rank.pid for rank in ranks)
        folders = [Path(rank_folder(memory_root(0, {}), rank.own_pid, rank.started_ticks)) for rank in ranks]
        assert not any(folder.exists() for folder in folders)
        patients = [Patient(rank) for rank in ranks]
        steps = [max((signs.step or 0) for _ in ranks if (signs := patient.look())) for patient in patients]
        for patient in patients:
            patient.close()
        scan = Scan.of("scan", "--job", JOB, "--attach", "never", "--via", "local")
    assert min(steps) > 0
    assert scan.exit_code == 3, scan.summary
    assert (scan.kind, scan.cause) == ("missing-participant", "checkpoint-io"), scan.summary
    assert scan.report["coverage"]["by_collector"]["flight-recorder"] == len(ranks), scan.summary
    assert [unknown for unknown in scan.report["unknowns"] if unknown["collector"] != "gpu"] == []
    assert scan.verdict["group"]["ranks"] == [0, 1, 2]
