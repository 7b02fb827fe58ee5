"""What was traced of the steps of a job: the operations of every rank with their times (parquet), or sums by step (Kineto)."""

from msgspec import Struct

from pardbg.watchdog.model.base import Noun


class TracedOperation(Struct, frozen=True, array_like=True, gc=False):
    """One operation of a rank in a step. ``kind`` is an index into the trace's ``kinds``; times are seconds within the step.

    ``number`` counts the operations of a kind in one step of a rank; ``chunk`` is the part of the model that a stage computes
    with, where it has several; -1: of none.
    """

    rank: int
    replica: int
    stage: int
    step: int
    kind: int
    start_s: float
    duration_s: float
    number: int
    chunk: int

    @property
    def end_s(self) -> float:
        """When it ended."""
        return self.start_s + self.duration_s


class StepTrace(Noun, frozen=True, kw_only=True, tag="step-trace"):
    """The traced steps of a job, in any order of operations. ``left_steps`` are older ones that were not taken."""

    kinds: tuple[str, ...]
    operations: tuple[TracedOperation, ...]
    left_steps: int = 0


class StepTimes(Struct, frozen=True, array_like=True, gc=False):
    """How long one step of a rank took, and what of it its GPU spent computing, communicating and with copies from the host.

    ``loading_s``: how long its training loop waited for data. All in seconds.
    """

    step: int
    span_s: float
    compute_s: float
    communication_s: float
    copying_s: float
    loading_s: float


class KernelTimes(Noun, frozen=True, kw_only=True, tag="kernel-times"):
    """The steps of one rank by the kernels of its GPU, ascending."""

    steps: tuple[StepTimes, ...]
