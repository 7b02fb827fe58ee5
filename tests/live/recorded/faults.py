"""The planted faults and what a diagnosis of the files should say of each."""

from pardbg.watchdog.demo.faults import PlantedFault
from pardbg.watchdog.model.names import Edit, Kind, Mismatch
from pardbg.watchdog.model.report import Report


class RecordedFault(PlantedFault, frozen=True, kw_only=True):
    """One planted fault, and what the recorders show of it. Files alone need not tell the cause."""

    mismatch: Mismatch | None = None
    edit: Edit | None = None

    def is_named_by(self, report: Report) -> bool:
        """Whether the report's verdict has this kind and exactly these culprits."""
        return self.is_blamed_by(report)


FAULTS: tuple[RecordedFault, ...] = (
    RecordedFault(
        name="stops-joining",
        sentence="rank 2 blocks in torch.save on a pipe that nobody reads, the others wait for it in a barrier",
        kind=Kind.MISSING_PARTICIPANT,
        culprits=(2,),
    ),
    RecordedFault(
        name="left-early",
        sentence="rank 2 leaves the training loop one step early and sleeps",
        kind=Kind.MISSING_PARTICIPANT,
        culprits=(2,),
    ),
    RecordedFault(
        name="left-early-exit",
        sentence="rank 2 leaves the training loop one step early and its process ends with exit code 0",
        kind=Kind.DEAD_RANK,
        culprits=(2,),
    ),
    RecordedFault(
        name="subgroup-missing",
        sentence="rank 3 never enters its subgroup's first collective; gloo's dumps do not say that it is a member",
        kind=Kind.INSUFFICIENT_EVIDENCE,
        culprits=(),
    ),
    RecordedFault(
        name="skipped",
        sentence="rank 2 skips an all_reduce and goes on with the broadcast that follows",
        kind=Kind.DESYNC,
        culprits=(2,),
        mismatch=Mismatch.OP,
        edit=Edit.SKIPPED,
    ),
    RecordedFault(
        name="extra",
        sentence="rank 2 calls a broadcast that the others do not call",
        kind=Kind.DESYNC,
        culprits=(2,),
        mismatch=Mismatch.OP,
        edit=Edit.EXTRA,
    ),
    RecordedFault(
        name="swapped",
        sentence="rank 2 calls a broadcast before an all_reduce, the others after it",
        kind=Kind.DESYNC,
        culprits=(2,),
        mismatch=Mismatch.OP,
        edit=Edit.SWAPPED,
    ),
    RecordedFault(
        name="other-op",
        sentence="rank 2 calls broadcast where the others call all_reduce",
        kind=Kind.DESYNC,
        culprits=(2,),
        mismatch=Mismatch.OP,
    ),
    RecordedFault(
        name="other-size",
        sentence="rank 2 calls all_reduce with 128 elements, the others with 256; gloo aborts rank 2",
        kind=Kind.DESYNC,
        culprits=(2,),
        mismatch=Mismatch.SIZE,
    ),
    RecordedFault(
        name="order",
        sentence="rank 2 enters the control group before the world, the others the world first",
        kind=Kind.ORDER_INVERSION,
        culprits=(2,),
    ),
    RecordedFault(
        name="p2p",
        sentence="rank 3 never sends what rank 1 waits for in recv",
        kind=Kind.P2P_UNMATCHED,
        culprits=(3,),
    ),
    RecordedFault(
        name="healthy",
        sentence="nothing is planted: the job trains to its end",
        kind=None,
        culprits=(),
    ),
)


def fault_named(name: str) -> RecordedFault:
    """Finds a fault in the table."""
    return next(fault for fault in FAULTS if fault.name == name)
