"""Local ranks to global ranks, ranks to hosts and process ids: through ``job.json``, or where one host is all there is."""

from collections.abc import Iterable
from pathlib import PurePath

from pardbg.watchdog.model.evidence import JobDescription


class RankMap:
    """What is known of ranks beyond the file that speaks of them."""

    def __init__(self, job: JobDescription | None, local_paths: Iterable[str], ranks_seen: Iterable[int]) -> None:
        """Learns the hosts and local ranks.

        Args:
            job: the job description, if there is one.
            local_paths: the files in folders that are numbered by local rank.
            ranks_seen: every global rank known otherwise, be it as a member of a group.
        """
        ranks = job.ranks if job else ()
        self._described = {rank.rank: rank for rank in ranks}
        self._hosts = {rank.host for rank in ranks if rank.host}
        self._by_local = {(rank.host, rank.local_rank): rank.rank for rank in ranks if rank.local_rank is not None}
        self._is_one_host = _is_one_host((job.world_size if job else None) or 0, list(local_paths), ranks_seen)

    def global_rank(self, path: str, local_rank: int | None) -> int | None:
        """The global rank of a local one, None where it is not certain."""
        if local_rank is None:
            return None
        if self._by_local:
            host = self.host_in(path)
            if host is None and len(self._hosts) <= 1:
                host = next(iter(self._hosts), None)
            return self._by_local.get((host, local_rank))
        return local_rank if self._is_one_host else None

    def host_of(self, rank: int | None) -> str | None:
        """The host of a rank as ``job.json`` has it."""
        described = self._described.get(rank) if rank is not None else None
        return described.host if described else None

    def pid_of(self, rank: int | None) -> int | None:
        """The process id of a rank, where ``job.json`` has it."""
        described = self._described.get(rank) if rank is not None else None
        return described.pid if described else None

    def host_in(self, path: str) -> str | None:
        """The folder of a path that is called like a host of the job."""
        return next((part for part in reversed(PurePath(path).parts[:-1]) if part in self._hosts), None)


def _is_one_host(world_size: int, local_paths: list[str], ranks_seen: Iterable[int]) -> bool:
    """Without a job description: one set of local folders, and no rank beyond them anywhere."""
    folders = {PurePath(path).parent for path in local_paths}
    if len({folder.parent for folder in folders}) != 1:
        return False
    largest = max(int(folder.name) for folder in folders)
    return world_size <= largest + 1 and all(rank <= largest for rank in ranks_seen)
