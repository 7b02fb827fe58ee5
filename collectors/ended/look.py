"""What has ended on this machine, and all that one run has left.

Cost: one child process of about 80 ms and 20 MB, 0.2 ms a folder, and for one run the parsing of a dump a rank. Deadline:
`WITHIN_S` for each of the steps. Nobody is touched, and nothing is left behind.
"""

import glob
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from pardbg.collectors.ended.evidence import EndedEvidence, as_processes
from pardbg.collectors.ended.requests import LastRead, LastRequest, LeftFolder, LeftListed, LeftRequest
from pardbg.collectors.ended.runs import EndedRank, Run, describe_ended, find_runs
from pardbg.collectors.live.sources import annotate_stacks
from pardbg.collectors.probe.places import ROOT_VARIABLE, memory_root
from pardbg.collectors.reading import Reader, Task
from pardbg.collectors.reading_job import ProbeRead, ProbeRequest
from pardbg.collectors.reading_protocol import FileRead
from pardbg.watchdog.model.evidence import Absence, Evidence
from pardbg.watchdog.model.names import AbsenceReason

WITHIN_S = 5.0
MOST_FOLDERS = 4096  # the newest
_PREFIX = memory_root(0, {}).removesuffix("0")
_PARSING_S = 5.0  # more for a dump


def find_ended_runs(environment: Mapping[str, str], *, command: Sequence[str] | None = None) -> list[Run]:
    """All runs of ranks whose processes are gone, the oldest first: ours, of root all users'.

    Args:
        environment: our own; it may name another root.
        command: what a child of the reader runs.
    """
    roots = _roots(environment)
    if not roots:
        return []
    with Reader(deadline_s=WITHIN_S / 2, command=command) as reader:
        tasks = [Task(request=LeftRequest(root=root, uid=uid), path=str(number)) for number, (root, uid) in enumerate(roots)]
        listed = reader.ask(tasks, within_s=WITHIN_S)
        folders = [folder for reply in listed.values() if isinstance(reply, LeftListed) for folder in reply.folders]
        folders = sorted((folder for folder in folders if _is_ours(folder)), key=lambda folder: folder.touched_ns)
        folders = folders[-MOST_FOLDERS:]
        asked = [
            Task(
                request=ProbeRequest(folder=folder.path, pid=folder.pid, started_ticks=folder.started_ticks, uid=folder.uid),
                path=str(number),
            )
            for number, folder in enumerate(folders)
        ]
        read = reader.ask(asked, within_s=WITHIN_S)
    ranks = []
    for number, folder in enumerate(folders):
        reply = read.get(str(number))
        if isinstance(reply, ProbeRead) and reply.own is not None:
            ranks.append(describe_ended(folder, reply.own, reply.heartbeat, reply.groups))
    return find_runs(rank for rank in ranks if rank is not None)


def read_run(run: Run, *, command: Sequence[str] | None = None) -> EndedEvidence:
    """Reads all that the ranks of a run have left, dumps included."""
    tasks = [Task(request=_last_request(rank), path=str(rank.rank), allowance_s=_PARSING_S) for rank in run.ranks]
    with Reader(deadline_s=WITHIN_S, command=command) as reader:
        replies = reader.ask(tasks, within_s=WITHIN_S + _PARSING_S * len(tasks))
    last = {rank.rank: reply for rank in run.ranks if isinstance(reply := replies.get(str(rank.rank)), LastRead)}
    unread = {
        rank.rank: Absence(reason=reply.problem.reason, detail=f"what its probe has left: {reply.problem.detail}")
        for rank in run.ranks
        if isinstance(reply := replies.get(str(rank.rank)), FileRead) and reply.problem is not None
    }
    lost = Absence(reason=AbsenceReason.UNREADABLE, detail="what its probe has left could not be read")
    unread |= {rank.rank: lost for rank in run.ranks if rank.rank not in last and rank.rank not in unread}
    return EndedEvidence(run, last, unread)


def evidence_of(found: EndedEvidence, run: Run) -> list[Evidence]:
    """Of all ranks, their stacks with source lines."""
    return annotate_stacks(found.of_ranks(), as_processes(run))


def _roots(environment: Mapping[str, str]) -> list[tuple[bytes, int | None]]:
    """Each root with the user it must belong to. In memory file systems they can be looked for at once."""
    uid = os.geteuid()
    paths = glob.glob(f"{_PREFIX}*") if uid == 0 else [memory_root(uid, {})]  # noqa: PTH207 - names only
    owners = {path: path.removeprefix(_PREFIX) for path in sorted(paths) if Path(path).exists()}
    roots: list[tuple[bytes, int | None]] = [
        (os.fsencode(path), int(owner)) for path, owner in owners.items() if owner.isascii() and owner.isdecimal()
    ]
    named = environment.get(ROOT_VARIABLE)
    return [*roots, (os.fsencode(named), None)] if named and os.path.isabs(named) else roots  # noqa: PTH117


def _is_ours(folder: LeftFolder) -> bool:
    """Root looks at all users' jobs; others at their own."""
    return os.geteuid() in {0, folder.uid}


def _last_request(rank: EndedRank) -> LastRequest:
    own = rank.own
    torchs = (f"{own.dumps}{rank.rank}",) if own.dumps else ()
    return LastRequest(
        folder=rank.folder.path,
        uid=rank.folder.uid,
        dumps=(*((own.last_dump,) if own.last_dump else ()), *torchs),
        since_ns=rank.started_ns,
        cgroup=own.cgroup,
    )
