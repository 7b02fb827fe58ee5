"""Runs py-spy on one process: in a session of its own, its output in memory that outlives us, never waited for blindly."""

import contextlib
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

_MOST_OUTPUT_BYTES = 256 * 1024 * 1024
_REAP_S = 0.2
COMMON_OPTIONS = ("--json", "-lll")
"""Three times l: dictionaries are cut off after 384 characters instead of 128, which four keyword arguments need."""


def find_py_spy() -> str | None:
    """The program: beside our interpreter, else on PATH."""
    beside = shutil.which("py-spy", path=str(Path(sys.executable).parent))
    return beside or shutil.which("py-spy")


@contextlib.contextmanager
def interrupts_held() -> Iterator[None]:
    """Ctrl-C takes effect at the end, so that what is started is also remembered. Certain only in a process of one thread."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class PySpyRun:
    """One run. Whoever starts it ends it with `close`, or with `leave` if it must not be killed."""

    def __init__(self, program: str, pid: int, *options: str) -> None:
        """Starts ``py-spy dump`` on a process.

        Raises:
            OSError: if the system starts no more processes.
        """
        self.started_at_s = time.monotonic()
        self.exit_code: int | None = None
        self._output = os.memfd_create("py-spy-output")
        self._errors = os.memfd_create("py-spy-errors")
        try:
            self._pid = os.posix_spawn(
                program,
                [program, "dump", *COMMON_OPTIONS, *options, "--pid", str(pid)],
                {"PATH": os.environ.get("PATH", "")},
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_DUP2, self._output, 1),
                    (os.POSIX_SPAWN_DUP2, self._errors, 2),
                ],
                setsid=True,
                setsigmask=(),
            )
        except BaseException:
            self._forget()
            raise

    @property
    def pid(self) -> int:
        """py-spy's own process id."""
        return self._pid

    def has_ended(self) -> bool:
        """Whether it is through; does not wait."""
        if self.exit_code is None:
            try:
                ended, status = os.waitpid(self._pid, os.WNOHANG)
            except ChildProcessError:  # whoever started us ignores the end of children: then nobody learns how they ended
                ended, status = self._pid, 0
            self.exit_code = os.waitstatus_to_exitcode(status) if ended else None
        return self.exit_code is not None

    @property
    def output(self) -> bytes:
        """What it has written to standard output so far."""
        return _read(self._output)

    @property
    def errors(self) -> str:
        """What it has written to standard error so far."""
        return _read(self._errors).decode(errors="replace")

    def close(self) -> None:
        """Ends it if it still runs. Only for a non-blocking run, which just reads memory: the job does not notice."""
        if not self.has_ended():
            os.kill(self._pid, signal.SIGKILL)
            give_up_at_s = time.monotonic() + _REAP_S
            while not self.has_ended() and time.monotonic() < give_up_at_s:
                time.sleep(0.005)
        self._forget()

    def leave(self) -> None:
        """Lets it run: it holds the process and will let go of it by itself. It keeps its output files."""
        self._forget()

    def _forget(self) -> None:
        for descriptor in (self._output, self._errors):
            with contextlib.suppress(OSError):
                os.close(descriptor)


def _read(descriptor: int) -> bytes:
    return os.pread(descriptor, min(os.fstat(descriptor).st_size, _MOST_OUTPUT_BYTES), 0)
