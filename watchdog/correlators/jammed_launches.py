"""Nobody waits for another rank, and yet nothing moves: every rank stands in a kernel launch, behind a GPU that spins.

A launch blocks where the queue of its GPU is full. In a job that is well the GPU then works; here all spin without any
traffic to memory, and nothing of NCCL is outstanding that they could spin in. Which kernel does so is not known, nor whose
fault it is: nobody is named.
"""

import re
from collections.abc import Iterable

from pardbg.watchdog.correlators.device_stuck import ask_devices
from pardbg.watchdog.correlators.device_words import device_line
from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.correlators.wording import count_ranks
from pardbg.watchdog.model.device import DeviceShape
from pardbg.watchdog.model.names import Cause, CollectorName, Confidence, Kind
from pardbg.watchdog.model.report import Finding

LEAST_S = 10.0  # for which each GPU was seen to spin: no step ends in between
_LAUNCH = re.compile(r"^(?:cu|cuda)Launch(?:Cooperative)?Kernel")
_INNERMOST = 6  # frames: a launch waits in a few of the driver's own
_MOST_LINES = 4


def correlate(situation: Situation) -> Iterable[Finding]:
    """At most one finding, if every single rank was seen in all three ways."""
    ranks = tuple(situation.standings)
    if not ranks or situation.graph.meetings or not all(_is_jammed(situation, rank) for rank in ranks):
        return
    launches = (
        situation.view.line(CollectorName.STACKS, rank, "stands in a kernel launch by its native stack") for rank in ranks
    )
    yield Finding(
        kind=Kind.DEVICE_STUCK,
        cause=Cause.GPU_KERNEL,
        confidence=Confidence.SUGGESTED,
        victims=ranks,
        claim=(
            f"{count_ranks(ranks)} stand in kernel launches that do not return, while their GPUs spin in a kernel that "
            "computes nothing; no collective is outstanding, so that no rank waits for another"
        ),
        evidence=(
            *list(launches)[:_MOST_LINES],
            *filter(None, (device_line(situation, rank) for rank in ranks[:_MOST_LINES])),
        ),
        advice=(
            "See which kernels are on the GPUs: such as spin for a flag or for a peer (symmetric memory, expert dispatch).",
        ),
        actions=tuple(ask_devices(situation, ranks)),
    )


def _is_jammed(situation: Situation, rank: int) -> bool:
    standing, stack = situation.standings[rank], situation.view.native_stacks.get(rank)
    thread = stack.main_thread if stack is not None else None
    frames = thread.frames[:_INNERMOST] if thread is not None else ()
    if standing.fronts or not standing.is_recorded or not any(_LAUNCH.match(frame.name) for frame in frames):
        return False
    is_lasting = (situation.view.devices[rank].shape_s or 0) >= LEAST_S if rank in situation.view.devices else False
    return is_lasting and situation.device_blamer.steady_shape(rank) is DeviceShape.SPINNING
