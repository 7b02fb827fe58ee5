"""A process as in a container: mount and pid namespaces, a root and a /dev/shm of its own. Starting takes 0.2 s."""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pardbg.collectors.inside import RankRoot
from pardbg.collectors.procfs.stat import parse_stat
from pardbg.watchdog.model.world import RankProcess

needs_root = pytest.mark.skipif(os.geteuid() != 0 or shutil.which("unshare") is None, reason="makes namespaces")

# It answers whoever connects to its socket, and ends when its input does.
_PROGRAM = """
import os, socket, subprocess, sys, threading
root = sys.argv[1]
for kind, place in (("tmpfs", "/dev/shm"), ("proc", "/proc"), ("sysfs", "/sys")):
    os.makedirs(root + place)
    subprocess.run(["mount", "-t", kind, kind, root + place], check=True)
os.chroot(root)
os.chdir("/work")
server = socket.socket(socket.AF_UNIX)
server.bind("/dev/shm/own.sock")
server.listen()
def answer():
    while True:
        with server.accept()[0] as connection:
            if connection.recv(1000):
                connection.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 4\\r\\n\\r\\nown!")
threading.Thread(target=answer, daemon=True).start()
print(os.getpid(), flush=True)
sys.stdin.read()
"""


@dataclass(frozen=True)
class Contained:
    """``pid`` is its number here, ``inner_pid`` the one that it finds itself; ``outside`` is a folder that it cannot reach."""

    pid: int
    inner_pid: int
    started_ticks: int
    outside: Path

    @property
    def root(self) -> Path:
        """Its root, for putting files there."""
        return Path(f"/proc/{self.pid}/root")

    @property
    def whose(self) -> RankRoot:
        """How its root is named."""
        return RankRoot(pid=self.pid, started_ticks=self.started_ticks)

    def as_rank(self, **recorder: str) -> RankProcess:
        """The rank that it could be."""
        return RankProcess(
            rank=0,
            pid=self.pid,
            started_ticks=self.started_ticks,
            host="here",
            uid=os.getuid(),
            recorder=recorder,
            is_at_home=False,
            inner_pid=self.inner_pid,
        )


@contextlib.contextmanager
def running_contained() -> Iterator[Contained]:
    """Runs it; the names are short, since they are those of sockets, too."""
    with tempfile.TemporaryDirectory(prefix="c-", dir="/tmp") as folder:
        (Path(folder) / "root/work").mkdir(parents=True)
        (Path(folder) / "outside").mkdir()
        command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", sys.executable, "-c", _PROGRAM, f"{folder}/root"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdin is not None
            inner_pid = int(process.stdout.readline())
            pid = int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text())
            ticks = parse_stat(Path(f"/proc/{pid}/stat").read_text()).started_ticks
            try:
                yield Contained(pid=pid, inner_pid=inner_pid, started_ticks=ticks, outside=Path(folder) / "outside")
            finally:
                process.stdin.close()
