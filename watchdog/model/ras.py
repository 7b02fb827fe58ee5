"""What NCCL's RAS service says of a job's communicators, asked of one of its processes.

RAS numbers the members of a communicator, not the ranks of the job, and gives addresses and process numbers as the processes
themselves see them.
"""

from pardbg.watchdog.model.base import Noun


class RasPlace(Noun, frozen=True, kw_only=True):
    """A member of a communicator. ``member`` is its rank therein; ``host`` an address."""

    member: int
    host: str | None = None
    pid: int | None = None


class RasCount(Noun, frozen=True, kw_only=True):
    """Members that have launched equally many operations of one kind. Of many only the number is told, and no ``members``."""

    op: str
    launched: int
    number: int
    members: tuple[int, ...] = ()


class RasCommunicator(Noun, frozen=True, kw_only=True):
    """A communicator. ``hash`` identifies it; ``counts`` is empty where all agree and RAS does not say on what.

    Attributes:
        size: number of its members.
        missing: those of whom RAS has no data: they do not answer, or no longer belong to it.
        dead: those whose processes RAS holds for dead.
        failed: those that report an error of NCCL's.
    """

    hash: str
    size: int | None = None
    counts: tuple[RasCount, ...] = ()
    missing: tuple[RasPlace, ...] = ()
    dead: tuple[RasPlace, ...] = ()
    failed: tuple[RasPlace, ...] = ()


class RasProcess(Noun, frozen=True, kw_only=True):
    """A process of the job that RAS holds for dead, or that did not answer."""

    host: str
    pid: int
    is_dead: bool


class RasSeen(Noun, frozen=True, kw_only=True, tag="ras"):
    """One answer of RAS; ``sample`` numbers the samples of one scan."""

    sample: int = 0
    nccl: str | None = None
    communicators: tuple[RasCommunicator, ...] = ()
    processes: tuple[RasProcess, ...] = ()
