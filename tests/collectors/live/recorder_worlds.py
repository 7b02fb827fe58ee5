"""Worlds of processes that the tests of the recorders start, and what reaching for them gives."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pardbg.collectors.live.recorders.reach import reach_recorders
from pardbg.watchdog.model.evidence import Absence, Evidence, FlightRecording
from pardbg.watchdog.model.names import AbsenceReason
from pardbg.watchdog.model.recording import Recording
from pardbg.watchdog.model.world import RankProcess, World

HERE = Path(__file__).parent
READY_S = 60.0


@contextmanager
def running(program: str, *args: str, env: Mapping[str, str] | None = None) -> Iterator[int]:
    """Runs a program of this folder until the block is left; gives its pid once it has said that it is ready."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("TORCH", "NCCL", "PYTHON"))}
    process = subprocess.Popen(
        [sys.executable, str(HERE / program), *args],
        env={**inherited, **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process:
        try:
            assert process.stdout is not None
            while (line := process.stdout.readline()) and line.strip() != "ready":
                pass
            assert line, "the program has ended"
            yield process.pid
        finally:
            for pid in _children(process.pid):
                os.kill(pid, 9)
            process.kill()


@contextmanager
def running_ranks(environments: Sequence[Mapping[str, str]]) -> Iterator[list[int]]:
    """A real job of gloo: `recorder_rank.py` once for each environment. Starting takes about 4 s."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    world = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(len(environments))}
    world |= {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    with ExitStack() as stack:
        starting = [
            running("recorder_rank.py", env={**world, "RANK": str(rank), **own}) for rank, own in enumerate(environments)
        ]
        with ThreadPoolExecutor(len(starting)) as pool:  # they wait for each other: all must start before one is ready
            pids = list(pool.map(stack.enter_context, starting))
        yield pids


def world_of(
    pids: Sequence[int], environments: Sequence[Mapping[str, str]], *, uid: int | None = None, is_at_home: bool = True
) -> World:
    """The world of these processes, as the finding of ranks would describe it."""
    return World(
        world_size=len(pids),
        ranks=tuple(
            RankProcess(
                rank=rank,
                pid=pid,
                started_ticks=started_ticks(pid),
                host="here",
                uid=os.getuid() if uid is None else uid,
                recorder=dict(environment),
                is_at_home=is_at_home,
            )
            for rank, (pid, environment) in enumerate(zip(pids, environments, strict=True))
        ),
    )


def reach_one(pid: int, environment: Mapping[str, str], *, deadline_s: float = 5.0, began_at: float | None = None) -> Evidence:
    """What reaching for a world of one process gives."""
    began_at = time.time() if began_at is None else began_at
    (evidence,) = reach_recorders(world_of([pid], [environment]), 0, deadline_s, began_at)
    return evidence


def recording_of(evidence: Evidence) -> Recording:
    """The recording, which must be there."""
    assert isinstance(evidence.observation, FlightRecording), evidence
    return evidence.observation.recording


def absence_of(evidence: Evidence) -> tuple[AbsenceReason, str]:
    """Reason and words of the absence, which must be there."""
    assert isinstance(evidence.observation, Absence), evidence.origin
    return evidence.observation.reason, evidence.observation.detail


def started_ticks(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def dump_text(*entries: Mapping[str, object], is_on: bool = True) -> str:
    """A recorder's JSON with these entries; with none of them it is an idle one, or one that is off."""
    progress = {"0": {"last_enqueued_collective": 3, "last_started_collective": -1, "last_completed_collective": 3}}
    dump = {"version": "2.10", "pg_config": {}, "pg_status": progress if is_on else {}}
    return json.dumps(dump | ({"entries": list(entries)} if entries else {}))


def _children(pid: int) -> list[int]:
    return [int(child) for path in Path(f"/proc/{pid}/task").glob("*/children") for child in path.read_text().split()]
