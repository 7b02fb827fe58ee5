"""Child processes of our own: what starts them, and how they are given up."""

import contextlib
import subprocess
import sys
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


def end_child(child: "subprocess.Popen[bytes]") -> None:
    """Kills a child and waits at most `END_S` for it. One in uninterruptible sleep stays until what it waits for answers."""
    for stream in (child.stdin, child.stdout):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
    child.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(timeout=END_S)
