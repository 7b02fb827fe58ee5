"""Where a job runs, as a scan needs it: this machine, or all nodes of a job behind a conversation. One scan serves both."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pardbg.collectors.jobs.query import ChosenJob
from pardbg.watchdog.model.evidence import Absence, Evidence
from pardbg.watchdog.model.reach import Reach
from pardbg.watchdog.model.wanted import Cut, Wanted
from pardbg.watchdog.scan.sample import Sample


@dataclass(frozen=True)
class Attachment:
    """What attaching to ranks gave: a recording or an absence for each, and how many keep a server."""

    evidence: tuple[Evidence, ...] = ()
    kept_count: int = 0


class Site(Protocol):
    """Looks where the job runs. Nothing of it raises for a bad world: what cannot be seen is an absence."""

    @property
    def where(self) -> str:
        """What was searched for ranks, in words: "this machine"."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """What the report should say of the looking itself."""

    @property
    def silent(self) -> Mapping[str, Absence]:
        """The hosts that did not answer when the job was looked for, and why: ranks that were not found may be there."""

    @property
    def reach(self) -> Reach:
        """What leads a person to its hosts."""

    def find(self) -> ChosenJob:
        """The job that is meant, as it is now; the other methods speak of the one found last.

        Raises:
            InputError: if there is no such job, or several.
        """

    def sample(self, number: int, until_s: float) -> Sample:
        """One look at everything, by a moment on the monotonic clock."""

    def attach(self, ranks: Sequence[int], sample: int, until_s: float, *, is_kept: bool) -> Attachment:
        """Attaches to ranks, in this order, and leaves them; ``is_kept``: but for a worker server."""

    def software(self, until_s: float) -> tuple[Evidence, ...]:
        """The versions that ranks run."""

    def entries(self, wanted: Sequence[Wanted], until_s: float) -> tuple[Cut, ...]:
        """Entries of rings of which the last sample, or attaching, has given digests; none where it gave the rings."""

    def logs(self, until_s: float) -> tuple[Evidence, ...]:
        """What the logs of all ranks say."""

    def routing(self) -> tuple[Evidence, ...]:
        """How the ranks of this machine route tokens to experts, where probes have counted it; nothing of other machines."""

    def fault_stacks(self, ranks: Collection[int], until_s: float) -> tuple[Evidence, ...]:
        """Stacks that ranks have written about themselves, where nobody may look into them."""

    def native_stacks(self, ranks: Collection[int], sample: int, until_s: float) -> tuple[Evidence, ...]:
        """Stacks with native frames of a few ranks, which stand still for some 50 ms each."""
