"""Nobody waits in training any more, and ranks stand in what takes their process groups down: they do not leave.

One look at that is no hang: it takes two, or a watchdog that says it stood still.
"""

from collections.abc import Iterable

from pardbg.watchdog.correlators.log_words import log_line
from pardbg.watchdog.correlators.situation import LEAVING, Situation
from pardbg.watchdog.correlators.wording import name_ranks, stack_line
from pardbg.watchdog.graph.standing import Stance
from pardbg.watchdog.model.log_event import WatchdogStuck
from pardbg.watchdog.model.names import Confidence, Kind
from pardbg.watchdog.model.report import Finding

_MOST_LINES = 4


def correlate(situation: Situation) -> Iterable[Finding]:
    """One finding for all ranks that do not leave, if all others have."""
    leaving = tuple(rank for rank in situation.standings if _is_leaving(situation, rank))
    rest = situation.standings.keys() - set(leaving) - situation.view.ended_ranks
    if not leaving or rest or situation.waiting_ranks or any(rank in situation.view.tracebacks for rank in situation.standings):
        return
    is_still = all(situation.standings[rank].is_still and not situation.host_motion(rank) for rank in leaving)
    words = [fact for fact, _ in situation.logs.of_type(WatchdogStuck)]
    if is_still or words:
        yield Finding(
            kind=Kind.TEARDOWN_STUCK,
            confidence=Confidence.ESTABLISHED if is_still else Confidence.SUPPORTED,
            culprits=tuple(situation.subject(rank, "does not leave") for rank in leaving),
            claim=(
                f"training is over: nobody waits in it, and {name_ranks(leaving)} "
                f"{'stands' if len(leaving) == 1 else 'stand'} in the take-down of their process groups"
            ),
            evidence=(*(stack_line(situation, rank) for rank in leaving[:_MOST_LINES]), *map(log_line, words[:_MOST_LINES])),
            advice=("Look whether the last checkpoint is whole; if it is, the processes can be ended.",),
        )


def _is_leaving(situation: Situation, rank: int) -> bool:
    """By its stack; whatever its recorder shows to be done or not to be seen."""
    if situation.stance(rank) in {Stance.WAITING, Stance.ENDED}:
        return False
    return any(LEAVING.match(frame.bare_name) for frame in situation.main_frames(rank))
