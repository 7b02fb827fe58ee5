"""Whose native stacks are worth a short stop: very few ranks, and only where Python's stacks do not explain."""

from pardbg.collectors.live.native_stacks import MOST_RANKS
from pardbg.watchdog.correlators.situation import UNEXPLAINED_CAUSES, Situation
from pardbg.watchdog.graph.standing import Stance, Standing
from pardbg.watchdog.model.process import STOPPED_STATES
from pardbg.watchdog.positions.position import Place


def ranks_that_need_native(situation: Situation) -> tuple[int, ...]:
    """The ranks that hold others up, or may, and whose stacks do not say by what; none if nobody waits or the job moves."""
    if situation.motion or not situation.waiting_ranks:
        return ()
    wanted = [rank for rank, standing in situation.standings.items() if _is_open(situation, rank, standing)]
    return tuple(wanted[:MOST_RANKS])


def _is_open(situation: Situation, rank: int, standing: Standing) -> bool:
    looks = situation.view.looks.get(rank)
    position = standing.position
    if not looks or looks[-1].state in STOPPED_STATES or position is None or not situation.main_frames(rank):
        return False
    if standing.stance is Stance.UNSEEN:
        return True
    is_host = standing.stance is Stance.HOST and position.place is Place.HOST
    return is_host and situation.host_cause(rank) in UNEXPLAINED_CAUSES and not situation.host_motion(rank)
