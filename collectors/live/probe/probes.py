"""What the probes of ranks say, in one look: heartbeats as evidence, and the groups that each rank has made.

Cost: one child process of about 80 ms and 20 MB for eight ranks, none where no rank can have a probe; a rank costs 0.2 ms and
notices nothing. Deadline: `WITHIN_S` for all ranks. Leaves nothing behind. A rank without a probe is normal and no absence.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from pardbg.collectors.inside import RankRoot
from pardbg.collectors.live.moment import now_rfc3339
from pardbg.collectors.live.probe.place import folder_of
from pardbg.collectors.live.recorders.outcome import Refusal
from pardbg.collectors.parsing.rank_file import RankFile
from pardbg.collectors.probe.places import PAGE_FILE, ROOT_VARIABLE, memory_root
from pardbg.collectors.reading import Reader, Task
from pardbg.collectors.reading_job import ProbeRead, ProbeRequest
from pardbg.collectors.reading_protocol import FileRead, Reply
from pardbg.watchdog.model.evidence import Absence, Evidence, Observation
from pardbg.watchdog.model.names import CollectorName
from pardbg.watchdog.model.recording import GroupConfig
from pardbg.watchdog.model.world import RankProcess

WITHIN_S = 3.0


@dataclass(frozen=True)
class Probes:
    """What the probes said. ``own`` and ``groups`` are by rank, those without a probe left out."""

    evidence: tuple[Evidence, ...] = ()
    own: dict[int, RankFile] = field(default_factory=dict)
    groups: dict[int, tuple[GroupConfig, ...]] = field(default_factory=dict)


def read_probes(
    ranks: Sequence[RankProcess], sample: int, *, within_s: float = WITHIN_S, command: Sequence[str] | None = None
) -> Probes:
    """Reads all probes.

    Args:
        ranks: the processes.
        sample: number of this look.
        within_s: how long all of it may take, seconds.
        command: what a child of the reader runs.
    """
    asked = {rank.rank: (rank, folder) for rank in ranks if (folder := _may_have_one(rank)) is not None}
    if not asked:
        return Probes()
    tasks = [
        Task(
            request=ProbeRequest(
                folder=folder,
                pid=rank.own_pid,
                started_ticks=rank.started_ticks,
                uid=rank.uid,
                inside=None if rank.is_at_home else RankRoot(pid=rank.pid, started_ticks=rank.started_ticks),
            ),
            path=str(number),
        )
        for number, (rank, folder) in asked.items()
    ]
    until_s = time.monotonic() + within_s
    with Reader(deadline_s=within_s / 2, command=command) as reader:
        replies = reader.ask(tasks, within_s=until_s - time.monotonic())
    read = {number: reply for number in asked if isinstance(reply := replies.get(str(number)), ProbeRead)}
    return Probes(
        evidence=tuple(_evidence(asked, replies, sample)),
        own={number: reply.own for number, reply in read.items() if reply.own is not None},
        groups={number: reply.groups for number, reply in read.items() if reply.groups},
    )


def _may_have_one(rank: RankProcess) -> bytes | None:
    """The folder to ask for, if there can be one: the usual root lies in memory and can be looked for at once."""
    folder = folder_of(rank.own_pid, rank.started_ticks, rank.own_uid, rank.recorder)
    is_usual = rank.is_at_home and not rank.recorder.get(ROOT_VARIABLE)
    return None if is_usual and not Path(memory_root(rank.own_uid, {})).exists() else folder


def _evidence(asked: dict[int, tuple[RankProcess, bytes]], replies: dict[str, Reply], sample: int) -> Iterator[Evidence]:
    for number, (rank, folder) in asked.items():
        origin = folder.decode(errors="backslashreplace")
        for seen, where in _observations(replies.get(str(number)), sample, origin):
            yield Evidence(
                source=CollectorName.HOST,
                rank=number,
                host=rank.host,
                observed_at=now_rfc3339(),
                observation=seen,
                origin=where,
            )


def _observations(reply: Reply | None, sample: int, origin: str) -> Iterable[tuple[Observation, str]]:
    if isinstance(reply, ProbeRead):
        if reply.heartbeat is not None:
            yield replace(reply.heartbeat, sample=sample), f"{origin}/{PAGE_FILE}"
        for problem in reply.problems:
            yield _absence(problem), problem.origin or origin
    elif isinstance(reply, FileRead) and reply.problem is not None:
        detail = f"its probe's files: {reply.problem.detail}"
        yield Absence(reason=reply.problem.reason, detail=detail), origin


def _absence(problem: Refusal) -> Absence:
    return Absence(reason=problem.reason, detail=f"its probe's {problem.origin.rpartition('/')[2]}: {problem.detail}")
