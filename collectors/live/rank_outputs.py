"""What the ranks of a live job have written to the files that their output goes to.

Cost: a question or two a rank to child processes that may be abandoned, and the last 8 MB of each distinct file, read once.
Opening a file through a descriptor of a process changes nothing for it. Pipes, terminals and sockets are never opened; they are
no evidence, which is normal and not an absence. Leaves nothing behind.
"""

import time
from collections.abc import Iterable, Sequence

from pardbg.collectors.live.moment import as_rfc3339, now_rfc3339
from pardbg.collectors.live.start_time import CLOCK_SLACK_NS, started_ns
from pardbg.collectors.reading import Reader, Task
from pardbg.collectors.reading_job import OutputFile, OutputRead, OutputRequest, OutputsListed, OutputsRequest
from pardbg.collectors.reading_protocol import FileRead, Reply
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.evidence import Absence, Evidence
from pardbg.watchdog.model.names import CollectorName
from pardbg.watchdog.model.world import RankProcess

WITHIN_S = 3.0


class WrittenFile(Noun, frozen=True, kw_only=True):
    """A file with the ranks that write to it."""

    file: OutputFile
    writers: tuple[RankProcess, ...]
    is_launchers: bool = False

    @property
    def owner(self) -> RankProcess | None:
        """The only writer; None if other ranks, or a launcher, write there too."""
        return None if self.is_launchers or len(self.writers) > 1 else self.writers[0]


class RankOutput(Noun, frozen=True, kw_only=True):
    """What the end of one file says."""

    written: WrittenFile
    read: OutputRead

    @property
    def is_present(self) -> bool:
        """Whether anything in it can be from the present processes."""
        return self.read.mtime_ns + CLOCK_SLACK_NS >= min(started_ns(writer.started_ticks) for writer in self.written.writers)

    @property
    def written_at(self) -> str:
        """When it was last written, RFC 3339."""
        return as_rfc3339(self.read.mtime_ns)


class RankOutputs(Noun, frozen=True, kw_only=True):
    """All files that could be read, and what could not."""

    outputs: tuple[RankOutput, ...]
    absences: tuple[Evidence, ...]


def read_outputs(
    ranks: Sequence[RankProcess], source: CollectorName, *, is_wide: bool, within_s: float, command: Sequence[str] | None
) -> RankOutputs:
    """Reads standard output and error of each rank where they are regular files.

    Args:
        ranks: all of this machine, so that shared files are known as such.
        source: the collector that absences speak for.
        is_wide: further files that a rank writes and whose names are those of texts count as well.
        within_s: how long all of it may take, seconds.
        command: what a child of the reader runs.
    """
    until_s = time.monotonic() + within_s
    asked = {f"{rank.pid} {wide}": (rank, wide) for wide in sorted({False, is_wide}) for rank in ranks}
    with Reader(deadline_s=within_s / 2, command=command) as reader:
        listed = reader.ask([_listing(key, *asked[key]) for key in asked], within_s=within_s)
        files = _gather((asked[key][0], reply) for key, reply in listed.items())
        answers = reader.ask([_reading(key, files[key]) for key in files], within_s=until_s - time.monotonic())
    unlisted = [_absence(reply, source, asked[key][0], f"/proc/{asked[key][0].pid}/fd") for key, reply in listed.items()]
    unread = [_absence(reply, source, files[key].owner, files[key].file.path) for key, reply in answers.items()]
    outputs = (RankOutput(written=files[key], read=reply) for key, reply in answers.items() if isinstance(reply, OutputRead))
    present = tuple(output for output in outputs if output.is_present)
    return RankOutputs(outputs=present, absences=tuple(item for item in (*unlisted, *unread) if item is not None))


def _listing(key: str, rank: RankProcess, is_wide: bool) -> Task:  # noqa: FBT001 - unpacked
    return Task(request=OutputsRequest(pid=rank.pid, started_ticks=rank.started_ticks, is_wide=is_wide), path=key)


def _gather(listed: Iterable[tuple[RankProcess, Reply]]) -> dict[str, WrittenFile]:
    """The distinct files, whoever names them."""
    files: dict[str, WrittenFile] = {}
    for rank, reply in listed:
        for file in reply.files if isinstance(reply, OutputsListed) else ():
            key = f"{file.device}:{file.inode}"
            known = files.get(key, WrittenFile(file=file, writers=()))
            writers = known.writers if rank in known.writers else (*known.writers, rank)
            files[key] = WrittenFile(file=known.file, writers=writers, is_launchers=known.is_launchers or file.is_launchers)
    return files


def _reading(key: str, written: WrittenFile) -> Task:
    first = written.writers[0]
    request = OutputRequest(
        pid=first.pid,
        started_ticks=first.started_ticks,
        descriptor=written.file.descriptor,
        live_pids=tuple(rank.pid for rank in written.writers),
    )
    return Task(request=request, path=key, device=written.file.device)


def _absence(reply: Reply, source: CollectorName, rank: RankProcess | None, origin: str) -> Evidence | None:
    if not isinstance(reply, FileRead) or reply.problem is None:
        return None
    return Evidence(
        source=source,
        rank=rank.rank if rank else None,
        host=rank.host if rank else None,
        observed_at=now_rfc3339(),
        observation=Absence(reason=reply.problem.reason, detail=f"output of the rank: {reply.problem.detail}"),
        origin=origin,
    )
