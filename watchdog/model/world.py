"""A job that runs on this machine: which process is which rank."""

from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.evidence import Evidence
from pardbg.watchdog.model.names import JobSource


class RankProcess(Noun, frozen=True, kw_only=True):
    """The process that is a rank. Its identity is (host, pid, start time, attempt).

    Attributes:
        started_ticks: clock ticks since boot.
        recorder: what its environment asks of the flight recorder: the closed list of names in
            ``collectors/jobs/environment.py`` with their values, nothing else of the environment.
        is_at_home: whether it lives in our own mount namespace, so that its paths mean the same here.
        inner_pid: its number in its own pid namespace, as it calls itself; None: as here.
        inner_uid: its user's number in its own user namespace; None: as here.
    """

    rank: int
    pid: int
    started_ticks: int
    host: str
    local_rank: int | None = None
    uid: int = 0
    recorder: dict[str, str] = {}
    is_at_home: bool = True
    inner_pid: int | None = None
    inner_uid: int | None = None

    @property
    def own_pid(self) -> int:
        """The number that it finds itself."""
        return self.pid if self.inner_pid is None else self.inner_pid

    @property
    def own_uid(self) -> int:
        """The user that it finds itself to be."""
        return self.uid if self.inner_uid is None else self.inner_uid


class EndedProcess(Noun, frozen=True, kw_only=True):
    """A rank of this machine that has no process any more. ``exit_code`` as Python writes it (-9: SIGKILL), None if unknown."""

    rank: int
    pid: int | None = None
    exit_code: int | None = None


class World(Noun, frozen=True, kw_only=True):
    """The processes that share MASTER_ADDR, MASTER_PORT, WORLD_SIZE and attempt.

    Attributes:
        job_ids: the names this world answers to, by who gave them; the most telling first (`JobSource` order: run, slurm,
            kubernetes, torchrun).
        store: ``address:port`` of its store, empty if unknown.
        ranks: those found alive on this machine, by rank.
        ended: ranks that belong to this machine and have no process any more.
        evidence: what could not be seen while looking for it (`Absence`), duplicates included.
    """

    job_ids: tuple[tuple[JobSource, str], ...] = ()
    store: str = ""
    world_size: int | None
    attempt: int | None = None
    ranks: tuple[RankProcess, ...]
    ended: tuple[EndedProcess, ...] = ()
    evidence: tuple[Evidence, ...] = ()
