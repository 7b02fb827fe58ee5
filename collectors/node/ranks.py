"""Which Python and torch ranks run, from what they have mapped, and whether a scan could attach to them.

Runs in the trying child: a stuck rank may keep it. Ranks are read, not touched.
"""

import queue
import re
import threading
from collections import Counter
from collections.abc import Iterator

from pardbg.collectors.attach.assessing import Refused, assess
from pardbg.collectors.live.identity import is_same_process
from pardbg.collectors.live.process_folder import ProcessFolder
from pardbg.collectors.live.recorders.rank_root import opened_root
from pardbg.collectors.live.recorders.switched_off import read_version
from pardbg.collectors.live.recorders.trusted_file import RefusedError
from pardbg.collectors.node.answers import RankLook, RanksRequest, RankTarget

_PROGRAM = re.compile(r"/python3\.(\d{1,2})[a-z]*$")
_LIBRARY = re.compile(r"/libpython3\.(\d{1,2})[a-z]*\.so")
_FOLDER = re.compile(r"/python3\.(\d{1,2})[a-z]*/")


def look_at_ranks(request: RanksRequest) -> Iterator[RankLook]:
    """Each rank in a thread of its own, as they answer. The caller has the deadline."""
    answers: queue.SimpleQueue[RankLook] = queue.SimpleQueue()

    def work(target: RankTarget) -> None:
        try:
            look = _look(target)
        except OSError:
            look = RankLook(pid=target.pid)
        answers.put(look)

    for target in request.ranks:
        threading.Thread(target=work, args=(target,), daemon=True).start()
    for _ in request.ranks:
        yield answers.get()


def _look(target: RankTarget) -> RankLook:
    with ProcessFolder(target.pid) as folder:
        if not is_same_process(target.pid, target.started_ticks):
            return RankLook(pid=target.pid)
        program, memory_map = folder.link("exe"), folder.text("maps")
        torch, why_no_files = _read_torch(target, memory_map)
        return RankLook(
            pid=target.pid,
            python=find_python(program or "", memory_map or ""),
            torch=torch,
            is_denied=folder.is_denied,
            why_no_attach=_why_no_attach(target),
            why_no_files=why_no_files,
        )


def _read_torch(target: RankTarget, memory_map: str | None) -> tuple[tuple[int, int] | None, str]:
    """The version, and why none of the rank's files can be read."""
    try:
        with opened_root(target.foreign_root) as root:
            return (read_version(memory_map, root) if memory_map else None), ""
    except RefusedError as error:
        return None, error.refusal.detail


def _why_no_attach(target: RankTarget) -> str:
    if not target.is_at_home:
        return "it lives in another mount namespace: run pardbg in its container"
    found = assess(target.pid)
    return found.why if isinstance(found, Refused) else ""


def find_python(program: str, memory_map: str) -> int | None:
    """The minor number of Python 3: from the program's name, else its library's, else that of most libraries' folder."""
    found = _PROGRAM.search(program.removesuffix(" (deleted)")) or _LIBRARY.search(memory_map)
    if found:
        return int(found[1])
    folders = Counter(_FOLDER.findall(memory_map)).most_common(1)
    return int(folders[0][0]) if folders else None
