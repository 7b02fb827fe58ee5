"""Folders as the probes of ranks leave them when their processes are gone, made by hand."""

import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from pardbg.collectors.probe.page_format import Record, StepRecord
from pardbg.collectors.probe.places import GROUPS_FILE, PAGE_FILE, RANK_FILE
from tests.collectors.probe_pages import page_of

BOOT_ID = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
NO_PROCESS = 4_200_000  # above every process number that the kernel gives by default
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
TORCHRUN = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500", "TORCHELASTIC_RUN_ID": "job"}


def ticks_ago(seconds: float) -> int:
    """A start time."""
    return int((time.clock_gettime(time.CLOCK_BOOTTIME) - seconds) * TICKS_PER_S)


@dataclass
class Left:
    """What one launch of a job has left; every rank lived from ``started_ago_s`` until ``ended_ago_s``."""

    root: Path
    started_ago_s: float = 100.0
    ended_ago_s: float = 40.0
    world_size: int = 2
    attempt: int = 0
    environment: dict[str, str] = field(default_factory=dict)
    first_pid: int = NO_PROCESS

    def add(self, rank: int, *records: Record, pid: int | None = None, **changes: object) -> Path:
        """The folder of one rank, with its last step and the given records in its page."""
        pid = self.first_pid + rank if pid is None else pid
        started_ticks = ticks_ago(self.started_ago_s)
        folder = self.root / f"{pid}-{started_ticks}"
        folder.mkdir(mode=0o700)
        step = StepRecord(41, time.time_ns() - int(self.ended_ago_s * 1e9), 1, 1, 1, 1)
        (folder / PAGE_FILE).write_bytes(page_of(step, *records, pid=pid))
        group = {"name": "0", "desc": "default_pg", "runs": [[0, 1, self.world_size]]}
        (folder / GROUPS_FILE).write_text(json.dumps(group) + "\n")
        own = {
            "schema": "pardbg.rank/1",
            "rank": rank,
            "local_rank": rank,
            "world_size": self.world_size,
            "attempt": self.attempt,
            "pid": pid,
            "started_ticks": started_ticks,
            "host": "node1",
            "boot_id": BOOT_ID,
            "is_member": True,
            "environment": {**TORCHRUN, "RANK": str(rank), "WORLD_SIZE": str(self.world_size), **self.environment},
        }
        (folder / RANK_FILE).write_text(json.dumps(own | changes))
        self.age(folder)
        return folder

    def age(self, folder: Path) -> None:
        """Lets the files be as old as the end of their rank."""
        ended_ns = time.time_ns() - int(self.ended_ago_s * 1e9)
        for path in folder.iterdir():
            os.utime(path, ns=(ended_ns, ended_ns), follow_symlinks=False)
