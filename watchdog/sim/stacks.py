"""What `py-spy dump --json` would print of a rank, given where its host stands."""

from collections.abc import Sequence
from typing import Any

from pardbg.watchdog.model.recording import Frame
from pardbg.watchdog.sim.engine import Host

FIRST_PID = 20_000
_THREAD_ID = 139_674_295_085_952


def stack_of(host: Host) -> list[dict[str, Any]]:
    """The threads of the rank's process: the training thread and the pin-memory thread of its data loader."""
    pid = FIRST_PID + host.rank
    frames = host.standing.frames if host.standing else ()
    idle = Frame(name="wait", filename="/usr/lib/python3.11/threading.py", line=324)
    return [
        describe_thread(pid, pid, "MainThread", frames),
        describe_thread(pid, pid + 1, "Thread-1 (_pin_memory_loop)", (idle,)),
    ]


def describe_thread(  # noqa: PLR0913 - a thread has as many fields
    pid: int, os_thread_id: int, name: str, frames: Sequence[Frame], *, is_active: bool = False, owns_gil: bool = False
) -> dict[str, Any]:
    """One thread as py-spy's JSON has it, innermost frame first."""
    return {
        "pid": pid,
        "thread_id": _THREAD_ID + 4096 * (os_thread_id - FIRST_PID),
        "thread_name": name,
        "os_thread_id": os_thread_id,
        "active": is_active,
        "owns_gil": owns_gil,
        "frames": [_frame(frame) for frame in frames],
        "process_info": None,
    }


def _frame(frame: Frame) -> dict[str, Any]:
    return {
        "name": frame.name,
        "filename": frame.filename,
        "module": None,
        "short_filename": frame.filename.rsplit("/", 1)[-1],
        "line": frame.line,
        "locals": None,
        "is_entry": False,
    }
