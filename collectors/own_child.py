"""Child processes of our own: what starts them, and how they are given up."""

import contextlib
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

import pardbg

END_S = 1.0


def child_command(module: str) -> list[str]:
    """The command that runs ``main`` of a module of ours.

    Isolated and without site, so that neither the folder it works in nor the environment can add code.
    """
    places = dict.fromkeys(str(Path(found.__file__ or "").parent.parent) for found in (pardbg, msgspec))
    start = f"import sys; sys.path += sys.argv[1:]; from {module} import main; main()"
    return [sys.executable, "-I", "-S", "-c", start, *places]


def start_child(command: Sequence[str]) -> "subprocess.Popen[bytes]":
    """Starts a child that is spoken to by pipes, in a session of its own: Ctrl-C reaches us, who end it.

    Raises:
        OSError: if the system starts no more processes.
    """
    return subprocess.Popen(  # noqa: S603 - our own interpreter and code
        list(command),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,
        start_new_session=True,
    )


def end_child(child: "subprocess.Popen[bytes]") -> None:
    """Kills a child and waits at most `END_S` for it. One in uninterruptible sleep stays until what it waits for answers."""
    for stream in (child.stdin, child.stdout):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
    child.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(timeout=END_S)
