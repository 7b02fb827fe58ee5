"""A scan that an agent starts: the command `pardbg scan` in a process of its own, which takes its memory with it when it ends.

Cost and deadlines: those of `scan`. It attaches to nobody unless the site says so. If it does not end in time, it is ended: it
holds no thread of a rank (`--attach never`) or lets go of it by itself (`collectors/attach/child.py`).
"""

import contextlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import msgspec

from pardbg.watchdog.model.report import Report

_GRACE_S = 30.0
_END_S = 5.0
_MOST_COMPLAINT_BYTES = 2000


class ScanFailedError(Exception):
    """No report came of it, and why."""


class RunningScan:
    """One `pardbg scan` child."""

    def __init__(self, options: Sequence[str], folder: Path | None, *, now_s: float, timeout_s: float = 60.0) -> None:
        """Starts it.

        Args:
            options: which job, and how to reach it.
            folder: for the evidence, empty or not there; None: it saves none.
            now_s: the moment, of the monotonic clock.
            timeout_s: the scan's own deadline, seconds.

        Raises:
            ScanFailedError: if it cannot be started.
        """
        self.folder = folder
        self._until_s = now_s + timeout_s + _GRACE_S
        command = [sys.executable, "-m", "pardbg", "scan", *options, "--json", f"--timeout={timeout_s:g}"]
        command += [] if folder is None else [f"--save={folder}"]
        self._output: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        self._complaints: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own command
                command, stdin=subprocess.DEVNULL, stdout=self._output, stderr=self._complaints, start_new_session=True
            )
        except OSError as error:
            self._close_files()
            raise ScanFailedError(f"`pardbg scan` cannot be started: {error.strerror}") from error

    def poll(self, now_s: float) -> Report | None:
        """Its report, None while it runs.

        Raises:
            ScanFailedError: if there will be none.
        """
        code = self._process.poll()
        if code is None and now_s < self._until_s:
            return None
        if code is None:
            self.close()
            raise ScanFailedError("it did not end in time, and was ended")
        return self._read(code)

    def close(self) -> None:
        """Ends it if it runs, and lets go of its output."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(_END_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._close_files()

    def _read(self, code: int) -> Report:
        self._output.seek(0)
        self._complaints.seek(0)
        said, complaint = self._output.read(), self._complaints.read(_MOST_COMPLAINT_BYTES).decode(errors="replace")
        self._close_files()
        try:
            return msgspec.convert(json.loads(said), Report)  # msgspec's own parser knows no names that are no text
        except (msgspec.ValidationError, ValueError) as error:
            last = (complaint.strip().splitlines() or ["it said nothing"])[-1]
            raise ScanFailedError(f"exit code {code}: {last}") from error

    def _close_files(self) -> None:
        for file in (self._output, self._complaints):
            with contextlib.suppress(OSError):
                file.close()
