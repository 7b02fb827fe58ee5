"""py-spy tried on a process of our own: which version it is, which Pythons it knows, whether it takes a stack.

Runs in the trying child. Cost: 50 ms. Deadline: `_DEADLINE_S` for each of its two runs; the second is killed then, which may be
done to a run that does not stop the process. Leaves nothing behind.
"""

import contextlib
import os
import re
import subprocess
import time

from pardbg.collectors.live.py_spy import PySpyRun
from pardbg.collectors.live.py_spy_errors import explain_failure
from pardbg.collectors.node.answers import PySpyTrial, TrialRequest

_DEADLINE_S = 2.0
_LARGEST_PROGRAM_BYTES = 64 * 1024**2
_KNOWN_PYTHON = re.compile(rb"v3_(\d{1,2})_\d")
_VERSION = re.compile(r"(\d+\.\d+(?:\.\d+)*)")


def try_py_spy(request: TrialRequest) -> PySpyTrial:
    """Whether it is there, and works."""
    if not request.py_spy:
        return PySpyTrial()
    version = _version_of(request.py_spy)
    return PySpyTrial(
        path=request.py_spy,
        version=version,
        newest_python=newest_known_python(_read_program(request.py_spy), version),
        problem=_take_stack(request) if version else "it does not run",
    )


def _version_of(program: str) -> str:
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(  # noqa: S603 - the program that scan runs
            [program, "--version"],
            env={"PATH": os.environ.get("PATH", "")},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_DEADLINE_S,
            check=True,
        )
        found = _VERSION.search(done.stdout.decode(errors="replace"))
        return found[1] if found else ""
    return ""


def _read_program(path: str) -> bytes:
    with contextlib.suppress(OSError), open(path, "rb") as program:  # noqa: PTH123
        return program.read(_LARGEST_PROGRAM_BYTES)
    return b""


def newest_known_python(program: bytes, version: str) -> int | None:
    """The newest Python 3 that a py-spy has tables for.

    Its tables are named after the versions; where the names were stripped, releases say it: 3.13 came with 0.4.0, 3.11 with
    0.3.13.
    """
    named = [int(minor) for minor in _KNOWN_PYTHON.findall(program)]
    if named:
        return max(named)
    numbers = tuple(int(part) for part in version.split(".")) if version else ()
    known = ((0, 4, 0), 13), ((0, 3, 13), 11), ((0, 3, 10), 10)
    return next((python for since, python in known if numbers >= since), None)


def _take_stack(request: TrialRequest) -> str:
    """Why there is none; empty if there is one. The process sleeps, so one attempt will do."""
    try:
        run = PySpyRun(request.py_spy, request.pid, "--nonblocking")
    except OSError as error:
        return f"it could not be started: {error.strerror}"
    try:
        give_up_at_s = time.monotonic() + _DEADLINE_S
        while not run.has_ended():
            if time.monotonic() > give_up_at_s:
                return "it gave no stack before the deadline"
            time.sleep(0.003)
        return "" if run.exit_code == 0 and run.output else explain_failure(run.errors).detail
    finally:
        run.close()
