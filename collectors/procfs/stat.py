"""``/proc/PID/stat`` and ``/proc/PID/task/TID/stat``: one line of fields that survives any command name."""

from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.base import Noun

_PARENT, _FLAGS, _USER_TICKS, _SYSTEM_TICKS, _STARTED, _EXIT_CODE = 1, 6, 11, 12, 19, 49  # after the name, from the state on
_IS_KERNEL_THREAD, _IS_FORKED = 0x00200000, 0x00000040


class ProcessStat(Noun, frozen=True, kw_only=True):
    """The fields that matter. Ticks are clock ticks (``SC_CLK_TCK`` a second); ``started_ticks`` counts from boot.

    ``wait_status`` is as ``waitpid`` gives it, meaningful for a zombie only, 0 where the kernel hides it.
    """

    pid: int
    name: str
    state: str
    parent_pid: int
    cpu_ticks: int
    started_ticks: int
    wait_status: int
    flags: int = 0

    @property
    def is_kernel_thread(self) -> bool:
        """Whether it is a part of the kernel."""
        return bool(self.flags & _IS_KERNEL_THREAD)

    @property
    def is_forked(self) -> bool:
        """Whether it runs the program that its parent had started, having started none itself."""
        return bool(self.flags & _IS_FORKED)


def parse_stat(text: str) -> ProcessStat:
    """Reads the line; the name may hold spaces and parentheses.

    Raises:
        ParseError: if it is no such line.
    """
    head, _, rest = text.rpartition(")")
    pid, _, name = head.partition("(")
    fields = rest.split()
    try:
        return ProcessStat(
            pid=int(pid),
            name=name,
            state=fields[0],
            parent_pid=int(fields[_PARENT]),
            cpu_ticks=int(fields[_USER_TICKS]) + int(fields[_SYSTEM_TICKS]),
            started_ticks=int(fields[_STARTED]),
            flags=int(fields[_FLAGS]),
            wait_status=int(fields[_EXIT_CODE]) if len(fields) > _EXIT_CODE else 0,
        )
    except (ValueError, IndexError) as error:
        raise ParseError(f"not a line of /proc/PID/stat: {text[:80]!r}") from error
