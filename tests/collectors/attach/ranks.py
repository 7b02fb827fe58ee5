"""Real ranks to attach to, and what a scan does with them: attach, wait until the server answers, detach."""

# ruff: noqa: T201 - what it prints is read by tests

import socket
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

from msgspec.structs import replace

from pardbg.collectors.attach.lines import detach_lines, serve_lines
from pardbg.collectors.attach.server_threads import has_server_thread
from pardbg.collectors.attach.shooting import Outcome, shoot
from pardbg.collectors.live.recorders.http_exchange import NoAnswerError, exchange
from pardbg.collectors.live.recorders.listening import UnixAddress
from pardbg.collectors.procfs.stat import parse_stat
from pardbg.watchdog.model.world import RankProcess
from tests.collectors.attach.started import Target, started

ANSWER_S = 5.0


@contextmanager
def training(world: int) -> Iterator[list[Target]]:
    """So many ranks that train until their input ends."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    with ExitStack() as stack:
        targets = [stack.enter_context(_started_rank(rank, world, port)) for rank in range(world)]
        for target in targets:
            target.wait_until_ready()
        yield targets


def _started_rank(rank: int, world: int, port: str) -> AbstractContextManager[Target]:
    variables = [
        f"RANK={rank}",
        f"WORLD_SIZE={world}",
        "MASTER_ADDR=127.0.0.1",
        f"MASTER_PORT={port}",
    ]  # by which a scan finds it
    return started("rank.py", str(rank), str(world), port, prefix=["env", *variables], is_awaited=False)


def as_rank(target: Target, number: int = 0, *, root: str = "", **more: object) -> RankProcess:
    """A target as the scan knows a rank; ``root``: where it is to write, its usual place if empty."""
    stat = parse_stat(Path(f"/proc/{target.pid}/stat").read_text())
    rank = RankProcess(
        rank=number,
        pid=target.pid,
        started_ticks=stat.started_ticks,
        host="here",
        uid=Path(f"/proc/{target.pid}").stat().st_uid,
        recorder={"PARDBG_DIR": root} if root else {},
    )
    return replace(rank, **more)


def answers(pid: int, folder: Path, within_s: float = ANSWER_S) -> bool:
    """Whether the server in a folder answers in time."""
    until_s = time.monotonic() + within_s
    while True:
        try:
            exchange(UnixAddress(path=bytes(folder / "server.sock")), "GET /handler/", pid=pid, until_s=until_s)
        except NoAnswerError:
            if time.monotonic() > until_s:
                return False
            time.sleep(0.002)
        else:
            return True


def attach_and_detach(pid: int, folder: Path) -> tuple[Outcome, Outcome]:
    """Both, with an answer in between; what was left by one that was killed is used and taken away."""
    if not answers(pid, folder, 0.0):
        (folder / "server.sock").unlink(missing_ok=True)
    attached = shoot(pid, serve_lines(str(folder)))
    if not answers(pid, folder):
        return attached, Outcome(why="it never answered")
    until_s = time.monotonic() + ANSWER_S
    while True:
        detached = shoot(pid, detach_lines())
        if not has_server_thread(pid) or time.monotonic() > until_s:
            return attached, detached


if __name__ == "__main__":
    print("began", flush=True)
    while True:
        print(attach_and_detach(int(sys.argv[1]), Path(sys.argv[2])), flush=True)
