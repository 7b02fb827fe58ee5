"""Of which rank, on which host, each observation of a file speaks: from files that were read to evidence."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timezone
from pathlib import PurePath

from msgspec.structs import replace

from pardbg.collectors.attempts import describe_outdated, newest_attempts
from pardbg.collectors.parsing.file_names import FileName
from pardbg.collectors.parsing.kernel_log import place_log_in_year
from pardbg.collectors.parsing.recognise import OF_NO_RANK, Content, Found, guess_by_name
from pardbg.collectors.rank_map import RankMap
from pardbg.collectors.reading_protocol import FileRead
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.device import DeviceSeen
from pardbg.watchdog.model.evidence import Absence, Evidence, FlightRecording, JobDescription, Observation, Stack
from pardbg.watchdog.model.kernel import KernelLog
from pardbg.watchdog.model.members import MAX_WORLD_SIZE
from pardbg.watchdog.model.names import AbsenceReason, CollectorName
from pardbg.watchdog.model.process import ProcessSample
from pardbg.watchdog.model.ras import RasSeen


class ReadFile(Noun, frozen=True, kw_only=True):
    """One file with what its name and its content say."""

    path: str
    name: FileName
    read: FileRead

    @property
    def is_evidence(self) -> bool:
        """Whether the content is of a kind that pardbg knows."""
        return self.read.parsed.content is not Content.UNRECOGNISED

    @property
    def rank(self) -> int | None:
        """The global rank that the file itself tells, by its name or by the only rank that signs its lines."""
        if self.read.parsed.content in OF_NO_RANK:
            return None
        signers, is_of_many = self.read.parsed.signed_by, self.read.parsed.is_of_many
        is_signers = self.name.rank is None and len(signers) == 1 and not is_of_many
        return next(iter(signers)) if is_signers else self.name.rank

    @property
    def local_rank(self) -> int | None:
        """The local rank that a numeric folder tells."""
        return None if self.read.parsed.content in OF_NO_RANK else self.name.local_rank

    @property
    def source(self) -> CollectorName:
        """The collector it belongs to; of a file that could not be read, by its name."""
        content = self.read.parsed.content
        return (content if self.is_evidence else guess_by_name(PurePath(self.path).name)).source


def attribute(files: Sequence[ReadFile]) -> Iterator[Evidence]:
    """Turns files into evidence. A local rank becomes a global one only where that is certain."""
    files = _without_false_ranks(files)
    newest = newest_attempts(file.path for file in files)
    current = [file for file in files if describe_outdated(file.path, newest) is None]
    local = [file.path for file in current if file.is_evidence and file.rank is None and file.local_rank is not None]
    ranks = RankMap(_find_job(files), local, _ranks_seen(files))
    for file in files:
        outdated = describe_outdated(file.path, newest)
        if outdated is None:
            yield from file.read.parsed.saved
            yield from _evidence_of(file, ranks)
        elif file.is_evidence:
            absence = Absence(reason=AbsenceReason.SKIPPED, detail=outdated)
            yield Evidence(source=file.source, rank=None, observation=absence, origin=file.path)


def _without_false_ranks(files: Sequence[ReadFile]) -> list[ReadFile]:
    """Logs whose name only ends in a number that is no rank: the world is smaller, or others, or several, wrote its lines."""
    job = _find_job(files)
    size = (job.world_size if job is not None else None) or MAX_WORLD_SIZE
    kept = []
    for file in files:
        name, signers = file.name, file.read.parsed.signed_by
        is_log = file.read.parsed.content is Content.RANK_LOG
        is_of_others = bool(signers - {name.rank}) or file.read.parsed.is_of_many
        is_false = name.rank is not None and (name.rank >= size or is_of_others)
        kept.append(replace(file, name=replace(name, rank=None)) if is_log and name.is_guess and is_false else file)
    return kept


def _find_job(files: Iterable[ReadFile]) -> JobDescription | None:
    """The job description of the shortest path, should a folder hold more than one."""
    jobs = [
        (file.path, found.observation)
        for file in files
        for found in file.read.parsed.found
        if isinstance(found.observation, JobDescription)
    ]
    return min(jobs, key=lambda job: (len(job[0]), job[0]))[1] if jobs else None


def _ranks_seen(files: Iterable[ReadFile]) -> Iterator[int]:
    for file in files:
        if file.is_evidence and file.rank is not None:
            yield file.rank
        yield from file.read.parsed.signed_by
        for found in file.read.parsed.found:
            if found.rank is not None:
                yield found.rank
            if isinstance(found.observation, FlightRecording):
                for config in found.observation.recording.configs:
                    yield from config.ranks


def _evidence_of(file: ReadFile, ranks: RankMap) -> Iterator[Evidence]:
    rank_of_file = file.rank if file.rank is not None else ranks.global_rank(file.path, file.local_rank)
    for found in _observations(file):
        is_job = isinstance(found.observation, JobDescription)
        rank = found.rank
        if rank is None and not is_job and not file.read.parsed.signed_by - {rank_of_file}:
            rank = rank_of_file  # an unsigned line of a log that others sign is nobody's
        yield Evidence(
            source=file.source,
            rank=rank,
            host=None if is_job else ranks.host_of(rank) or file.name.host or ranks.host_in(file.path),
            observed_at=_as_rfc3339(file.read.mtime_ns),
            observation=_complete(found.observation, file, ranks.pid_of(rank)),
            origin=file.path,
        )


def _observations(file: ReadFile) -> tuple[Found, ...]:
    problem = file.read.problem
    if problem is None:
        return file.read.parsed.found
    return (Found(observation=Absence(reason=problem.reason, detail=problem.detail)),)


def _complete(observation: Observation, file: ReadFile, pid: int | None) -> Observation:
    sample = file.name.sample or 0
    if isinstance(observation, KernelLog):
        return place_log_in_year(observation, file.read.mtime_ns)
    if isinstance(observation, Stack):
        return replace(observation, sample=sample, pid=observation.pid if observation.pid is not None else pid)
    is_sampled = isinstance(observation, FlightRecording | ProcessSample | DeviceSeen | RasSeen)
    return replace(observation, sample=sample) if is_sampled else observation


def _as_rfc3339(time_ns: int | None) -> str | None:
    if time_ns is None:
        return None
    try:
        moment = datetime.fromtimestamp(time_ns // 1_000_000_000, tz=timezone.utc)
    except (OverflowError, ValueError, OSError):  # a file system may hold any number
        return None
    return moment.isoformat().replace("+00:00", "Z")
