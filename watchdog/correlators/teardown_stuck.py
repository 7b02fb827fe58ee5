"""Nobody waits in training any more, and ranks do not leave: they stand in what takes their process groups down, or before it.

Ranks that ended with exit code 0, while nobody waits for them, have finished training; so has who is left, and those who stand
in the take-down may wait for who has not come to it. One look at that is no hang: it takes two, or a watchdog that says it
stood still. Who still writes or loads something is at work.
"""

from collections.abc import Iterable, Iterator

from pardbg.watchdog.correlators.fates import all_left_in_peace
from pardbg.watchdog.correlators.log_words import log_line
from pardbg.watchdog.correlators.situation import LEAVING, Situation
from pardbg.watchdog.correlators.wording import count_ranks, name_ranks, stack_line, wait_verb
from pardbg.watchdog.graph.standing import Stance
from pardbg.watchdog.model.log_event import TrainingDone, WatchdogStuck
from pardbg.watchdog.model.names import Cause, CollectorName, Confidence, Kind
from pardbg.watchdog.model.report import EvidenceLine, Finding
from pardbg.watchdog.positions.position import Place

_MOST_LINES = 4
_AT_WORK = frozenset({Cause.CHECKPOINT_IO, Cause.FILE_IO, Cause.DATA_LOADING, Cause.COMPILE, Cause.GC})


def correlate(situation: Situation) -> Iterable[Finding]:
    """One finding for all ranks that do not leave, if all others have."""
    leaving = tuple(rank for rank in situation.standings if _is_leaving(situation, rank))
    here = situation.standings.keys() - situation.view.ended_ranks
    rest = tuple(sorted(here - set(leaving)))
    if situation.waiting_ranks or any(rank in situation.view.tracebacks for rank in situation.standings):
        return
    if not all(_has_trained(situation, rank) for rank in rest):
        return
    ranks, victims = (rest, leaving) if rest else (leaving, ())
    is_still = all(_stands(situation, rank) for rank in ranks)
    words = [fact for fact, _ in situation.logs.of_type(WatchdogStuck)]
    if ranks and (is_still or (words and not rest)):
        yield Finding(
            kind=Kind.TEARDOWN_STUCK,
            confidence=Confidence.ESTABLISHED if is_still and not rest else Confidence.SUPPORTED,
            culprits=tuple(situation.subject(rank, "does not leave") for rank in ranks),
            victims=victims,
            claim=f"training is over: nobody waits in it, and {_who_stays(situation, ranks, victims, is_in_it=not rest)}",
            evidence=(
                *(stack_line(situation, rank) for rank in ranks[:_MOST_LINES]),
                *map(log_line, words[:_MOST_LINES]),
                *_peaceful_end(situation),
            ),
            advice=("Look whether the last checkpoint is whole; if it is, the processes can be ended.",),
        )


def _who_stays(situation: Situation, ranks: tuple[int, ...], victims: tuple[int, ...], *, is_in_it: bool) -> str:
    are = "stands" if len(ranks) == 1 else "stand"
    if is_in_it:
        return f"{name_ranks(ranks)} {are} in the take-down of their process groups"
    position = situation.standings[ranks[0]].position
    where = f": {'it' if len(ranks) == 1 else f'rank {ranks[0]}'} is {position.words}" if position is not None else ""
    waits = f"; {count_ranks(victims)} {wait_verb(victims)} in the take-down of their process groups" if victims else ""
    return f"{name_ranks(ranks)} {'does' if len(ranks) == 1 else 'do'} not leave{where}{waits}"


def _peaceful_end(situation: Situation) -> Iterator[EvidenceLine]:
    """That the others have left, in one line."""
    ended = sorted(situation.view.ended_ranks)
    if ended and all_left_in_peace(situation):
        text = f"{name_ranks(ended)} ended with exit code 0, and nobody waits for {'it' if len(ended) == 1 else 'them'}"
        yield situation.view.line(CollectorName.HOST, ended[0], text)


def _has_trained(situation: Situation, rank: int) -> bool:
    """Whether a rank that is not in the take-down has nothing left to do, and stands still on the host all the same."""
    position = situation.standings[rank].position
    if position is None or position.place is not Place.HOST or situation.stance(rank) is Stance.WAITING:
        return False
    done = {fact.rank for fact, event in situation.logs.of_type(TrainingDone) if not event.is_passed}
    is_done = rank in done or all_left_in_peace(situation)
    return is_done and situation.host_cause(rank) not in _AT_WORK and _stands(situation, rank)


def _stands(situation: Situation, rank: int) -> bool:
    return situation.standings[rank].is_still and not situation.host_motion(rank)


def _is_leaving(situation: Situation, rank: int) -> bool:
    """By its stack; whatever its recorder shows to be done or not to be seen."""
    if situation.stance(rank) in {Stance.WAITING, Stance.ENDED}:
        return False
    return any(LEAVING.match(frame.bare_name) for frame in situation.main_frames(rank))
