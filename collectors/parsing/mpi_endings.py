"""How a process ended as mpirun (Open MPI, PRRTE) and Hydra (MPICH, Intel MPI) tell. Pure.

The rank of MPI's world is the global one. Hydra kills the others by SIGKILL and tells of these in the same words, so that of
several that were killed none is known to be the first.
"""

import re
import signal
from collections.abc import Iterator

from pardbg.collectors.parsing.log_lines import line_at
from pardbg.watchdog.model.log_event import LauncherFailure

_OPEN_MPI = re.compile(
    r"(?:mpirun|mpiexec|orterun|prterun) noticed that process rank (?P<rank>\d{1,7}) with PID (?P<pid>\d{1,10}) "
    r"on node (?P<host>\S{1,253}) exited on signal (?P<signal>\d{1,2})\b"
)
_HYDRA = re.compile(
    r"=   (?:RANK (?P<rank>\d{1,7}) )?PID (?P<pid>\d{1,10}) RUNNING AT (?P<host>\S{1,253})[^\n]{0,80}\n"
    r"[^\n]{0,80}?=   (?:KILLED BY SIGNAL: (?P<signal>\d{1,2})|EXIT (?:CODE|STATUS): (?P<code>\d{1,5}))"
)
_EXIT_STRING = re.compile(r"EXIT STRING: [^\n(]{1,80}\(signal (?P<signal>\d{1,2})\)")
_NEAR = 1000  # characters after a block in which MPICH says which signal it was


def parse_mpi_ends(text: str) -> Iterator[tuple[int, LauncherFailure]]:
    """Each end that is told, with the place in the text at which it is."""
    if " noticed that process rank " in text:
        for match in _OPEN_MPI.finditer(text):
            yield match.end(), _failure(match, -int(match["signal"]), is_named=True)
    if "RUNNING AT " in text:
        blocks = [(match, _hydra_code(match)) for match in _HYDRA.finditer(text)]
        killed = [match for match, code in blocks if code == -signal.SIGKILL]
        for match, code in blocks:
            yield match.end(), _failure(match, code, is_named=match not in killed or len(killed) == 1)


def _hydra_code(match: re.Match[str]) -> int:
    if match["signal"]:
        return -int(match["signal"])
    told = _EXIT_STRING.search(match.string, match.end(), match.end() + _NEAR)
    return -int(told["signal"]) if told else int(match["code"])


def _failure(match: re.Match[str], code: int, *, is_named: bool) -> LauncherFailure:
    rank = int(match["rank"]) if match["rank"] else None
    read = line_at(match.string, match.start())
    text = read.text
    return LauncherFailure(
        rank=rank if is_named else None,
        code=code,
        host=match["host"],
        pid=int(match["pid"]) or None,
        called="a process" if rank is None else f"MPI's rank {rank}",
        at_ns=read.at_ns,
        text=text if " noticed " in text else f"{text.strip('= ')}: {'signal' if code < 0 else 'exit code'} {abs(code)}",
    )
