"""How long to wait between the two samples: long enough for a healthy job to show that it moves."""

from pardbg.watchdog.correlators.situation import NS_PER_S, Situation
from pardbg.watchdog.graph.motion import youngest_wait_s
from pardbg.watchdog.judge.patience import longest_pause_s, patience_s
from pardbg.watchdog.model.pauses import usual_gap_ns

SHORTEST_S = 2.0
LONGEST_S = 30.0
MARGIN_S = 0.3


def choose_interval(situation: Situation) -> float:
    """Seconds from the first sample to the second.

    At least twice the median gap between a rank's collectives. A wait that is too young to count gets the time to grow old, so
    that the answer need not be "ask again".
    """
    usual_s = 2 * (_median_gap_s(situation) or 0.0)
    waited_s = youngest_wait_s(situation.view, situation.standings)
    patience = patience_s(longest_pause_s(situation)) + MARGIN_S
    growing_s = patience - (waited_s or 0.0) if situation.waiting_ranks else 0.0
    return min(max(SHORTEST_S, usual_s, growing_s), LONGEST_S)


def _median_gap_s(situation: Situation) -> float | None:
    gaps = [usual_gap_ns(recording) for recording in situation.view.recordings.values()]
    return max((gap / NS_PER_S for gap in gaps if gap is not None), default=None)
