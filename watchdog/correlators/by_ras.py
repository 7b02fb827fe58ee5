"""Who is missing or dead by NCCL's RAS alone: only where recorders, stacks and processes have nobody to name.

RAS knows which operations were launched, not whether they finish, and holds for dead whom it cannot reach, even if it is only
stopped. So nothing of it is certain, and without two answers that are alike, or ranks that are seen to wait, nobody is accused.
"""

from collections.abc import Iterable, Iterator

from pardbg.watchdog.correlators.comm_stuck import is_stuck
from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.correlators.wording import count_ranks, name_ranks, wait_verb
from pardbg.watchdog.graph.standing import Stance
from pardbg.watchdog.model.names import CollectorName, Confidence, Kind
from pardbg.watchdog.model.report import CollectiveRef, EvidenceLine, Finding
from pardbg.watchdog.store.ras_polls import Lag

ADVICE = ("Look at the stack of this rank: py-spy dump, or pardbg scan on its host.",)
_OPS = {
    "AllReduce": "all_reduce",
    "Broadcast": "broadcast",
    "Reduce": "reduce",
    "AllGather": "all_gather",
    "ReduceScatter": "reduce_scatter",
}


def correlate(situation: Situation) -> Iterable[Finding]:
    """At most one finding: of the dead, else of those that lag, else of those of whom RAS tells something amiss."""
    polls = situation.view.ras
    if not polls.answers or not _is_open(situation):
        return
    dead = tuple(rank for rank in sorted(polls.dead) if _is_unseen(situation, rank) and rank not in situation.view.looks)
    if dead:
        yield _describe_dead(situation, dead)
        return
    lags = [lag for lag in polls.lags if all(_is_unseen(situation, rank) for rank in lag.ranks)]
    waiting = {*situation.waiting_ranks, *(rank for waits in situation.log_waits.values() for rank in waits)}
    is_still = polls.is_frozen or (bool(waiting) and not polls.has_moved)
    is_one_set = len(lags) == len(polls.lags) and len({lag.ranks for lag in lags}) == 1
    if lags and is_still and is_one_set and not waiting.intersection(lags[0].ranks):
        yield _describe_lag(situation, lags[0])
    elif suspects := {rank: why for rank, why in polls.suspects.items() if _is_unseen(situation, rank)}:
        yield _describe_suspects(situation, suspects)


def _describe_suspects(situation: Situation, suspects: dict[int, str]) -> Finding:
    victims = tuple(rank for rank in situation.waiting_ranks if rank not in suspects)
    return Finding(
        kind=Kind.INSUFFICIENT_EVIDENCE,
        confidence=Confidence.SUGGESTED,
        candidates=tuple(situation.subject(rank, why) for rank, why in sorted(suspects.items())),
        victims=victims,
        claim=f"NCCL's RAS tells something amiss of {name_ranks(suspects)}, and its answer alone does not say what came first",
        evidence=tuple(_line(situation, rank, why) for rank, why in sorted(suspects.items())[:8]),
        advice=("Ask RAS again after 30 s or more: counts that stay apart are a hang, those that move are not.",),
    )


def ras_lines(situation: Situation, rank: int) -> Iterator[EvidenceLine]:
    """What RAS says of a rank."""
    polls = situation.view.ras
    if rank in polls.dead:
        yield _line(situation, rank, f"RAS holds {polls.dead[rank]} for dead: it cannot be reached")
    for lag in polls.lags:
        if rank in lag.ranks:
            yield _line(situation, rank, lag.words)


def _is_open(situation: Situation) -> bool:
    """Whether nothing else names anybody."""
    graph = situation.graph
    named = graph.roots or graph.cycles or situation.divergences or situation.device_blames or situation.view.ended_ranks
    return not named and not any(is_stuck(situation, meeting) for meeting in graph.dead_ends)


def _is_unseen(situation: Situation, rank: int) -> bool:
    return rank in situation.standings and situation.stance(rank) is Stance.UNSEEN


def _describe_dead(situation: Situation, ranks: tuple[int, ...]) -> Finding:
    victims = tuple(rank for rank in situation.waiting_ranks if rank not in ranks)
    return Finding(
        kind=Kind.DEAD_RANK,
        confidence=Confidence.SUPPORTED if victims else Confidence.SUGGESTED,
        culprits=tuple(situation.subject(rank, f"NCCL's RAS holds {situation.view.ras.dead[rank]} for dead") for rank in ranks),
        victims=victims,
        claim=(
            f"NCCL's RAS holds {name_ranks(ranks)} for dead, and nothing else was seen of "
            f"{'it' if len(ranks) == 1 else 'them'}{f'; {count_ranks(victims)} {wait_verb(victims)}' if victims else ''}"
        ),
        evidence=tuple(line for rank in ranks[:8] for line in ras_lines(situation, rank)),
        advice=("Look whether the process lives: RAS calls dead whom it cannot reach, such as one that is stopped.",),
    )


def _describe_lag(situation: Situation, lag: Lag) -> Finding:
    others = sorted(rank for rank in situation.standings if rank not in lag.ranks)
    return Finding(
        kind=Kind.MISSING_PARTICIPANT,
        confidence=Confidence.SUGGESTED,
        culprits=tuple(situation.subject(rank, lag.words) for rank in lag.ranks),
        victims=tuple(others),
        collective=CollectiveRef(op=_OPS.get(lag.op, lag.op.lower()), seq=None, sizes=(), dtype=None, src=None, dst=None),
        claim=(
            f"by NCCL's RAS {name_ranks(lag.ranks)} has not launched {lag.op} {lag.launched + 1} of the job's communicator, "
            f"while {count_ranks(others)} have launched up to {lag.most}; nothing else was seen of {name_ranks(lag.ranks)}"
        ),
        evidence=tuple(line for rank in lag.ranks[:8] for line in ras_lines(situation, rank)),
        advice=ADVICE,
    )


def _line(situation: Situation, rank: int, text: str) -> EvidenceLine:
    item = situation.view.ras.origin
    return EvidenceLine(
        source=CollectorName.RAS,
        rank=rank,
        host=situation.view.host(rank),
        at=item.observed_at if item is not None else None,
        text=text,
        origin=item.origin if item is not None else "",
    )
