"""The Slurm job that a user means: ``1234``, a task ``1234_7``, a het job's part ``1234+1``, each also with ``.STEP``."""

import re

from pardbg.watchdog.model.base import Noun

_FORM = re.compile(r"(?P<job>\d{1,10})(?:_(?P<task>\d{1,10})|\+(?P<offset>\d{1,10}))?(?:\.(?P<step>\w+))?", re.ASCII)


class SlurmQuery(Noun, frozen=True, kw_only=True):
    """The parts of an id. ``name`` is the id without the step: made of digits and one sign, so it can be no option."""

    job_id: int
    array_task: int | None = None
    het_offset: int | None = None
    step: str | None = None

    @property
    def name(self) -> str:
        """As Slurm's commands take it."""
        if self.array_task is not None:
            return f"{self.job_id}_{self.array_task}"
        return str(self.job_id) if self.het_offset is None else f"{self.job_id}+{self.het_offset}"


def read_query(text: str) -> SlurmQuery | None:
    """None if that is no id of Slurm's."""
    match = _FORM.fullmatch(text)
    if match is None:
        return None
    return SlurmQuery(
        job_id=int(match["job"]),
        array_task=int(match["task"]) if match["task"] else None,
        het_offset=int(match["offset"]) if match["offset"] else None,
        step=match["step"],
    )
