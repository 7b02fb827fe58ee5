"""``/proc/PID/status``: who a process runs as, and its numbers in nested pid namespaces."""

from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.base import Noun

_EFFECTIVE = 1


class ProcessStatus(Noun, frozen=True, kw_only=True):
    """The lines that matter. ``namespace_pids`` runs from our pid namespace to the process's own."""

    uid: int
    namespace_pids: tuple[int, ...] = ()


def parse_status(text: str) -> ProcessStatus:
    """Reads ``Uid`` (the effective one) and ``NSpid``.

    Raises:
        ParseError: if it is no such file.
    """
    lines = dict(line.partition(":")[::2] for line in text.splitlines())
    try:
        return ProcessStatus(
            uid=int(lines["Uid"].split()[_EFFECTIVE]),
            namespace_pids=tuple(int(pid) for pid in lines.get("NSpid", "").split()),
        )
    except (KeyError, IndexError, ValueError) as error:
        raise ParseError(f"not a /proc/PID/status: {text[:80]!r}") from error
