"""The stacks of ranks that py-spy may not look into, by asking the ranks themselves.

Cost: one or two child processes of about 100 ms, which may be abandoned; what it costs a rank is told in `stack_asking.py`.
Deadline: `WITHIN_S` for all ranks together, each in a thread of its own. Such stacks hold no locals, and do not say which
thread runs or holds the interpreter lock.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec
from msgspec.structs import replace

from pardbg.collectors.live.moment import as_rfc3339
from pardbg.collectors.live.recorders.outcome import StackAnswer
from pardbg.collectors.live.recorders.reach import answers
from pardbg.collectors.live.recorders.request import Request, Target
from pardbg.watchdog.model.evidence import Absence, Evidence, Stack, Thread
from pardbg.watchdog.model.names import AbsenceReason, CollectorName
from pardbg.watchdog.model.world import RankProcess

WITHIN_S = 4.0
_LOST = StackAnswer(is_mute=True)  # it may have been asked, and its answer did not come in time
_REFUSALS = frozenset({AbsenceReason.DENIED, AbsenceReason.UNSUPPORTED, AbsenceReason.NOT_INSTALLED})

Mute = tuple[int, int]
"""A process whose worker server keeps a question: pid and start time."""


@dataclass(frozen=True)
class AskedStacks:
    """``evidence`` with stacks in place of absences, where ranks gave some.

    ``refused`` are the ranks that may not be looked into from outside, ``mute`` the processes not to be asked again.
    """

    evidence: tuple[Evidence, ...]
    refused: frozenset[int] = frozenset()
    mute: frozenset[Mute] = frozenset()


def ask_where_refused(
    evidence: Sequence[Evidence], ranks: Sequence[RankProcess], sample: int, mute: Iterable[Mute] = ()
) -> AskedStacks:
    """Asks the ranks whose stacks were refused.

    Args:
        evidence: what `take_stacks` gave.
        ranks: the processes.
        sample: number of this look.
        mute: the processes that have not answered earlier in this scan.
    """
    refused = frozenset(_refused(evidence, ranks))
    asked = [rank for rank in ranks if rank.rank in refused]
    if not asked:
        return AskedStacks(tuple(evidence))
    was_mute = frozenset(mute)
    found = _ask(asked, frozenset(rank.rank for rank in asked if (rank.pid, rank.started_ticks) in was_mute))
    given = {
        rank.rank: _evidence(rank, answer, stack, sample)
        for rank in asked
        if (answer := found.get(rank.rank)) is not None and (stack := answer.stack) is not None
    }
    held = [_lock_evidence(rank, found[rank.rank], sample) for rank in asked if _is_only_held(found.get(rank.rank))]
    kept = [_explained(item, found) for item in evidence if not (_is_refusal(item) and item.rank in given)]
    is_all = len(given) == len(ranks)
    return AskedStacks(
        evidence=(*(item for item in kept if not (is_all and item.rank is None and _is_refusal(item))), *given.values(), *held),
        refused=refused,
        mute=was_mute | {(rank.pid, rank.started_ticks) for rank in asked if found.get(rank.rank, _LOST).is_mute},
    )


def _refused(evidence: Iterable[Evidence], ranks: Sequence[RankProcess]) -> Iterator[int]:
    for item in evidence:
        if _is_refusal(item):
            yield from (rank.rank for rank in ranks if item.rank in {rank.rank, None})


def _is_refusal(item: Evidence) -> bool:
    seen = item.observation
    return item.source is CollectorName.STACKS and isinstance(seen, Absence) and seen.reason in _REFUSALS


def _ask(asked: Sequence[RankProcess], mute_ranks: frozenset[int]) -> dict[int, StackAnswer]:
    until_s = time.monotonic() + WITHIN_S
    targets = tuple(map(Target.of, asked))
    request = Request(targets=targets, until_s=until_s - 0.1, is_for_stacks=True, mute_ranks=mute_ranks)
    found: dict[int, StackAnswer] = {}
    try:
        for reply in answers(request, until_s):
            if isinstance(reply.outcome, StackAnswer):
                found[reply.rank] = reply.outcome
    except (OSError, msgspec.DecodeError):
        pass  # the absences stay
    return found


def _evidence(rank: RankProcess, answer: StackAnswer, stack: Stack, sample: int) -> Evidence:
    return Evidence(
        source=CollectorName.STACKS,
        rank=rank.rank,
        host=rank.host,
        observed_at=as_rfc3339(answer.observed_ns),
        observation=replace(stack, pid=rank.pid, sample=sample),
        origin=answer.origin,
    )


def _is_only_held(answer: StackAnswer | None) -> bool:
    return answer is not None and answer.stack is None and answer.is_lock_held


def _lock_evidence(rank: RankProcess, answer: StackAnswer, sample: int) -> Evidence:
    """No frames, but that something holds the interpreter lock; the absence of the frames stays beside it."""
    main = Thread(name="MainThread", is_active=False, owns_gil=False, frames=())
    stack = Stack(pid=rank.pid, threads=(main,), tells_lock=False, is_lock_held=True)
    origin = f"/proc/{rank.pid}/task"
    return _evidence(rank, replace(answer, origin=origin, observed_ns=time.time_ns()), stack, sample)


def _explained(item: Evidence, found: dict[int, StackAnswer]) -> Evidence:
    """An absence that stays says what asking gave, in words that are the same in every sample."""
    seen, answer = item.observation, found.get(item.rank) if item.rank is not None else None
    if not isinstance(seen, Absence) or not _is_refusal(item) or answer is None or not answer.detail:
        return item
    return replace(item, observation=replace(seen, detail=f"{seen.detail}; asked itself: {answer.detail}"))
