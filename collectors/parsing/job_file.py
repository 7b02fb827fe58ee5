"""``job.json``: the job, its size and what was known of each rank's process."""

from typing import Any

import msgspec

from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.evidence import JobDescription, RankDescription


class _Process(msgspec.Struct):
    state: str | None = None
    exit_code: int | None = None


class _Rank(msgspec.Struct):
    rank: int
    host: str | None = None
    pid: int | None = None
    local_rank: int | None = None
    gpu_uuid: str | None = None
    pci_bus_id: str | None = None
    process: _Process | None = None


class _Job(msgspec.Struct):
    ranks: list[Any]
    job: str | int | None = None
    world_size: int | None = None
    sampled_at: str | None = None
    world: str | None = None
    attempt: int | None = None


def encode_job(job: JobDescription) -> bytes:
    """Writes a job description so that `parse_job` gives it back."""
    ranks = [
        {
            "rank": rank.rank,
            "host": rank.host,
            "pid": rank.pid,
            "local_rank": rank.local_rank,
            "gpu_uuid": rank.gpu_uuid,
            "pci_bus_id": rank.pci_bus_id,
            "process": {"state": rank.state, "exit_code": rank.exit_code},
        }
        for rank in job.ranks
    ]
    head = {"job": job.job, "world_size": job.world_size, "sampled_at": job.sampled_at}
    return msgspec.json.format(msgspec.json.encode({**head, "world": job.world, "attempt": job.attempt, "ranks": ranks}))


def parse_job(data: bytes) -> JobDescription:
    """Reads a job description; a rank that cannot be used is dropped, of two with one number the first is kept.

    Raises:
        ParseError: if it is no job description.
    """
    try:
        job = msgspec.json.decode(data, type=_Job)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ParseError(f"not a job description: {error}") from error
    ranks: dict[int, RankDescription] = {}
    for raw in job.ranks:
        try:
            rank = msgspec.convert(raw, _Rank)
        except msgspec.ValidationError:
            continue
        if rank.rank >= 0:
            ranks.setdefault(rank.rank, _flatten(rank))
    return JobDescription(
        job=None if job.job is None else str(job.job),
        world_size=job.world_size,
        ranks=tuple(ranks[number] for number in sorted(ranks)),
        sampled_at=job.sampled_at,
        world=job.world,
        attempt=job.attempt,
    )


def _flatten(rank: _Rank) -> RankDescription:
    process = rank.process or _Process()
    return RankDescription(
        rank=rank.rank,
        host=rank.host,
        pid=rank.pid,
        local_rank=rank.local_rank,
        gpu_uuid=rank.gpu_uuid,
        pci_bus_id=rank.pci_bus_id,
        state=process.state,
        exit_code=process.exit_code,
    )
