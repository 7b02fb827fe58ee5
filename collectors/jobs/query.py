"""What the user asks for, and what is found."""

from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.names import JobSource
from pardbg.watchdog.model.world import World


class JobQuery(Noun, frozen=True, kw_only=True):
    """``--job``, ``--pid`` (several) and ``--world``. Without a job and pids it means the only world of this machine.

    ``node``: the name of this machine among the nodes of the job, empty for its own; processes that Slurm has started for
    another node are another's, though they run here (several nodes on one machine).
    ``uid``: whose processes are seen, None for those of everybody.
    """

    job: str | None = None
    pids: tuple[int, ...] = ()
    world_size: int | None = None
    node: str = ""
    uid: int | None = None


class ChosenJob(Noun, frozen=True, kw_only=True):
    """The world that is meant, and the name under which the report speaks of it."""

    world: World
    source: JobSource
    job_id: str
