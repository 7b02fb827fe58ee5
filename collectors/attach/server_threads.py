"""The threads of torch's worker server, by the name that torch gives them. Cost to the process: none."""

from pathlib import Path

from pardbg.collectors.live.recorders.server_finding import THREAD_NAME


def has_server_thread(pid: int, proc: Path = Path("/proc")) -> bool:
    """Whether a process runs one.

    Raises:
        OSError: if it has ended.
    """
    return any(_name(thread) == THREAD_NAME for thread in (proc / str(pid) / "task").iterdir())


def _name(thread: Path) -> str:
    try:
        return (thread / "comm").read_text(errors="replace").strip()
    except OSError:  # it has ended
        return ""
