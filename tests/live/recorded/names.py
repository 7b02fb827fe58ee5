"""What a rank and its launcher agree on: file names and conditions. Imports no torch."""

from enum import Enum

from pardbg.watchdog.model.base import Noun

DUMP_PREFIX = "comm_lib_trace_rank_"  # PyTorch's own (FlightRecorder.cpp)
SIGNAL_PREFIX = "signal_of_rank_"
SEEN_NAME = "all_signals_seen"


class Condition(str, Enum):
    """What a rank does, as it says itself."""

    MOVING = "moving"
    STILL = "still"
    RETURNED = "returned"
    RAISED = "raised"
    ENDED = "ended"


class RankSignal(Noun, frozen=True, kw_only=True):
    """What a rank tells its launcher. Unless it moves, its newest dump is on disk."""

    rank: int
    local_rank: int
    host: str
    pid: int
    condition: Condition
