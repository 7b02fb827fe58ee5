"""What is said of ranks that their GPU, their host or their allocator makes slow."""

from collections.abc import Iterator, Sequence

from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.model.names import Cause
from pardbg.watchdog.model.report import EvidenceLine

SIGN_ADVICE = {
    Cause.THERMAL: "Take the node out and look at its cooling: fans, filters, the GPU's seat; its peers stay cool.",
    Cause.POWER: "Compare the power limit of this GPU with its peers' (nvidia-smi -q -d POWER), then look at the supplies.",
    Cause.CPU_CONTENTION: "Raise the CPU quota of this container (or set none): NCCL's proxies and loaders need cores, too.",
    Cause.ALLOCATOR: "Give this rank less to keep: a smaller batch, expandable_segments:True, or an even split of the model.",
}
_MOST_LINES = 4


def sign_lines(situation: Situation, ranks: Sequence[int]) -> Iterator[EvidenceLine]:
    """What shows it, of the first few ranks."""
    for rank in [rank for rank in ranks if rank in situation.slow_signs][:_MOST_LINES]:
        sign = situation.slow_signs[rank]
        yield situation.view.line(sign.source, rank, f"its {sign.words}")
