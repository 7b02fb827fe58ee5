"""Small targets for shots: programs of `targets/`, each a process of its own that ends with the test."""

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

TARGETS = Path(__file__).with_name("targets")
COMPILER = shutil.which("cc")
WAIT_S = 20.0


@dataclass
class Target:
    """A process that has said that it is ready."""

    process: "subprocess.Popen[str]"

    @property
    def pid(self) -> int:
        """Its number."""
        return self.process.pid

    @property
    def threads(self) -> int:
        """How many it has."""
        return len(list(Path(f"/proc/{self.pid}/task").iterdir()))

    def wait_until_ready(self) -> None:
        """Until it has said so."""
        assert self.process.stdout is not None
        word = self.process.stdout.readline().strip()
        assert word == "ready", word

    def run(self, line: str, *, is_awaited: bool = True) -> None:
        """Makes a rank run a line of Python."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        if is_awaited:
            self.wait_until_told()

    def wait_until_told(self) -> None:
        """Until it has run a line that was not awaited."""
        assert self.process.stdout is not None
        word = self.process.stdout.readline().strip()
        assert word == "told", word

    def end(self, words: str = "") -> tuple[int, str]:
        """Waits for its end: its exit code and what it has said."""
        out, _ = self.process.communicate(words, timeout=WAIT_S)
        return self.process.returncode, out

    def wait_for_call(self, call: int) -> None:
        """Until a thread other than the main one is in a system call."""
        until_s = time.monotonic() + WAIT_S
        while time.monotonic() < until_s:
            for path in Path(f"/proc/{self.pid}/task").iterdir():
                if int(path.name) != self.pid and (path / "syscall").read_text().split()[0] == str(call):
                    return
            time.sleep(0.005)
        raise TimeoutError(f"it never was in call {call}")


@contextmanager
def started(*command: str, prefix: Sequence[str] = (), is_awaited: bool = True) -> Iterator[Target]:
    """Runs a command until the block is left, from its first line on; a name in `targets/` is run by Python."""
    words = [sys.executable, str(TARGETS / command[0]), *command[1:]] if command[0].endswith(".py") else list(command)
    process = subprocess.Popen(
        [*prefix, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    with process:
        try:
            target = Target(process)
            if is_awaited:
                target.wait_until_ready()
            yield target
        finally:
            process.kill()


def compiled(name: str, folder: Path, *options: str) -> Path:
    """A shared library from a file in `targets/`."""
    assert COMPILER is not None
    library = folder / f"{name}.so"
    source = str(TARGETS / f"{name}.c")
    subprocess.run([COMPILER, "-O1", "-shared", "-fPIC", "-pthread", *options, "-o", str(library), source], check=True)
    return library
