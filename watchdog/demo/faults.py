"""The planted faults and what a scan should say of each. What the ranks do is in `train.py`."""

from pardbg.watchdog.errors import InputError
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.names import Cause, Kind, Scope, Status
from pardbg.watchdog.model.report import Report

DEFAULT_FAULT = "stops-joining"


class PlantedFault(Noun, frozen=True, kw_only=True):
    """One planted fault. ``kind`` is None for the control: nothing is wrong. ``culprits`` are global ranks."""

    name: str
    sentence: str
    kind: Kind | None
    culprits: tuple[int, ...]
    cause: Cause | None = None

    def is_named_by(self, report: Report) -> bool:
        """Whether the report's verdict has this kind, this cause and exactly these culprits."""
        return self.is_blamed_by(report) and (report.verdict is None or report.verdict.cause is self.cause)

    def is_blamed_by(self, report: Report) -> bool:
        """Whether the report's verdict has this kind and exactly these culprits."""
        verdict = report.verdict
        if self.kind is None or verdict is None:
            return self.kind is None and verdict is None and report.status is Status.HEALTHY
        named = tuple(sorted(subject.rank for subject in verdict.culprits if subject.rank is not None))
        are_ranks = all(subject.scope is Scope.RANK for subject in verdict.culprits)
        return verdict.kind is self.kind and are_ranks and named == self.culprits


FAULTS: tuple[PlantedFault, ...] = (
    PlantedFault(
        name="stops-joining",
        sentence="rank 2 blocks in torch.save on a pipe that nobody reads, the others wait for it in a barrier",
        kind=Kind.MISSING_PARTICIPANT,
        culprits=(2,),
        cause=Cause.CHECKPOINT_IO,
    ),
    PlantedFault(
        name="left-early",
        sentence="rank 2 has less data, leaves the training loop and sleeps",
        kind=Kind.MISSING_PARTICIPANT,
        culprits=(2,),
        cause=Cause.LEFT_LOOP,
    ),
    PlantedFault(
        name="order",
        sentence="rank 2 enters the control group before the world, the others the world first",
        kind=Kind.ORDER_INVERSION,
        culprits=(2,),
    ),
    PlantedFault(
        name="other-op",
        sentence="rank 2 calls broadcast where the others call all_reduce",
        kind=Kind.DESYNC,
        culprits=(2,),
    ),
    PlantedFault(
        name="p2p",
        sentence="rank 3 never sends what rank 1 waits for in recv, and goes on to the next collective",
        kind=Kind.P2P_UNMATCHED,
        culprits=(3,),
    ),
    PlantedFault(
        name="loader",
        sentence="rank 2 waits for its data loader, whose worker reads from a pipe to which nobody writes",
        kind=Kind.MISSING_PARTICIPANT,
        culprits=(2,),
        cause=Cause.DATA_LOADING,
    ),
    PlantedFault(
        name="lock",
        sentence="rank 2 waits for a lock that it holds itself",
        kind=Kind.MISSING_PARTICIPANT,
        culprits=(2,),
        cause=Cause.LOCK,
    ),
    PlantedFault(
        name="stopped",
        sentence="rank 2 is stopped by a signal (SIGSTOP)",
        kind=Kind.MISSING_PARTICIPANT,
        culprits=(2,),
        cause=Cause.STOPPED,
    ),
    PlantedFault(
        name="healthy",
        sentence="nothing is planted: the job trains on",
        kind=None,
        culprits=(),
    ),
)


def fault_named(name: str) -> PlantedFault:
    """Finds a fault in the table.

    Raises:
        InputError: if there is none of that name.
    """
    for fault in FAULTS:
        if fault.name == name:
            return fault
    raise InputError(
        f"there is no planted fault {name!r}; there are {', '.join(fault.name for fault in FAULTS)}",
        remedy="pardbg demo --list",
    )
