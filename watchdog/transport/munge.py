"""Munge credentials: who asks, vouched for by the machine that he asks from. One is worth something for one request alone.

The payload names the request, so that an agent that is given a credential cannot use it to ask others for something else.
Cost: one child process of some 5 ms. Deadline: `WITHIN_S`.
"""

import hashlib
import shutil
import subprocess
from pathlib import Path

from pardbg.watchdog.errors import PardbgError

WITHIN_S = 5.0
_MOST_BYTES = 16 * 1024
_SOCKET = "/run/munge/munge.socket.2"


class MungeError(PardbgError):
    """There is no credential, and why."""

    remedy = "see that munged runs: munge -n | unmunge; or give --no-munge and another way to say who you are"


def is_here(socket: str = "") -> bool:
    """Whether this machine has munge's program, and munged has made its socket."""
    return shutil.which("munge") is not None and Path(socket or _SOCKET).is_socket()


def words_of(method: str, path: str, body: bytes) -> str:
    """What a credential for a request says."""
    return f"pardbg {method} {path} {hashlib.sha256(body).hexdigest()}"


def make_credential(words: str, socket: str = "") -> str:
    """A credential of ours.

    Raises:
        MungeError: if munge gives none.
    """
    command = ["munge", *([f"--socket={socket}"] if socket else [])]
    try:
        done = subprocess.run(  # noqa: S603 - our own words
            command, input=words.encode(), capture_output=True, timeout=WITHIN_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MungeError(f"munge does not answer: {type(error).__name__}") from error
    said = done.stdout[:_MOST_BYTES].decode("ascii", "replace").strip()
    if done.returncode != 0 or not said.startswith("MUNGE:"):
        complaint = done.stderr[:200].decode("utf-8", "replace").strip()
        raise MungeError(f"munge gives no credential: {complaint or f'exit code {done.returncode}'}")
    return said
