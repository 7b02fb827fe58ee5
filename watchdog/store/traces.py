"""What was traced of steps: of all ranks together, or by the kernels of single ones."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import gcd

from pardbg.watchdog.model.evidence import Evidence
from pardbg.watchdog.model.step_trace import KernelTimes, StepTrace


@dataclass(frozen=True)
class Traces:
    """All traces among the evidence; ``kernels`` by rank."""

    steps: tuple[StepTrace, ...]
    kernels: dict[int, KernelTimes]

    @classmethod
    def of(cls, evidence: Iterable[Evidence]) -> "Traces":
        """Picks them out."""
        seen = [(item.rank, item.observation) for item in evidence]
        return cls(
            steps=tuple(found for _, found in seen if isinstance(found, StepTrace)),
            kernels={rank: found for rank, found in seen if isinstance(found, KernelTimes) and rank is not None},
        )

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self.steps or self.kernels)

    @cached_property
    def ranks(self) -> frozenset[int]:
        """Whom the traces of steps tell of."""
        return frozenset(operation.rank for trace in self.steps for operation in trace.operations)

    @cached_property
    def stride(self) -> int:
        """1, or how many ranks each traced rank stands for: some tracers take one of those that compute alike."""
        return gcd(*self.ranks) if len(self.ranks) > 1 else 1

    @property
    def last_rank(self) -> int:
        """The highest rank that is told of or stood for; -1 where none is."""
        return max(self.ranks, default=-self.stride) + self.stride - 1
