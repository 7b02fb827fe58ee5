"""The first rank that failed by itself, as logs tell: the rest lost it as a peer, or were ended by their launcher.

Only of ranks of which nothing better was seen. What a launcher calls the root cause is what it noticed first, and not
believed, but for the only SIGKILL among the exits of those that lost a peer (`reported`).
"""

import re
from collections.abc import Iterable

from pardbg.watchdog.correlators import dead_rank
from pardbg.watchdog.correlators.fates import exit_code_of
from pardbg.watchdog.correlators.log_words import MAX_LINES, log_line
from pardbg.watchdog.correlators.reported import reported_only
from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.correlators.wording import count_ranks, name_ranks
from pardbg.watchdog.graph.log_facts import Failure, first_of
from pardbg.watchdog.graph.standing import Stance
from pardbg.watchdog.model.log_event import SECONDARY, LauncherFailure
from pardbg.watchdog.model.names import Cause, CollectorName, Confidence, Kind
from pardbg.watchdog.model.report import EvidenceLine, Finding
from pardbg.watchdog.model.text import shorten

MAX_TOLD = 4
LONGEST_WORDS = 160
_BRACKETS = re.compile(r"^(?:\[[^\]]*\] *)+")
_OUT_OF_MEMORY = re.compile(r"out of memory|OutOfMemoryError", re.IGNORECASE)
_SAVE_MEMORY = (
    "Give the device less to hold: a smaller batch, activation checkpointing, a shorter sequence. See with nvidia-smi whether "
    "another process is on it; PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True helps against fragments."
)
_OUT_OF_SIGHT = frozenset({Stance.UNSEEN, Stance.ENDED})


def correlate(situation: Situation) -> Iterable[Finding]:
    """At most one finding: who failed first, or who may have."""
    view = situation.view
    if view.looks or not (situation.logs.facts or view.tracebacks) or any(dead_rank.correlate(situation)):
        return  # of what is seen to live or to have ended others speak
    found = situation.own_failures
    failures = [failure for rank, failure in found.items() if _may_have_failed(situation, rank)]
    first = first_of(view, [failure for failure in failures if not failure.is_passed] or failures)
    first = [*_doubtful_before(situation, first), *first]
    bereaved = _bereaved(situation, {failure.rank for failure in first})
    is_alone = not (view.recordings or view.stacks or view.looks)
    if first and (bereaved or is_alone):
        yield _describe(situation, first, bereaved)
    elif not first and (ended := reported_only(situation)):
        yield _describe_reported(situation, ended)


def _doubtful_before(situation: Situation, first: list[Failure]) -> list[Failure]:
    """Exceptions that came clearly before the first error of a rank's own, and may have been the first of all."""
    if not first or any(failure.at_ns is None for failure in first):
        return []
    dated = [failure for failure in situation.doubtful_failures.values() if failure.at_ns is not None]
    return [failure for failure in dated if first_of(situation.view, [failure, *first]) == [failure]]


def _may_have_failed(situation: Situation, rank: int) -> bool:
    """Whether nothing better than its log was seen of a rank, and, where recorders show waits, they do not clear it."""
    if rank not in situation.standings or situation.stance(rank) not in _OUT_OF_SIGHT or exit_code_of(situation, rank) == 0:
        return False
    meetings = situation.graph.meetings.values()
    return not situation.view.recordings or any(rank in {*meeting.unknown, *meeting.absent} for meeting in meetings)


def _bereaved(situation: Situation, first: set[int]) -> tuple[int, ...]:
    """The others of whom anything says that they waited, lost a peer, or were ended."""
    logs, view = situation.logs, situation.view
    unnamed = any(fact.rank is None and isinstance(fact.event, SECONDARY) for fact in logs.facts)
    waiting = {*situation.waiting_ranks, *logs.setting_up}
    others = {*logs.bereaved, *view.bereaved_ranks, *waiting, *view.ended_ranks} - first
    return tuple(sorted(rank for rank in others or (set(situation.standings) - first if unnamed else ()) if rank not in first))


def _describe(situation: Situation, first: list[Failure], bereaved: tuple[int, ...]) -> Finding:
    alike = _are_all_alike(situation, first)
    is_clear = first[0].is_uncaught or (bool(bereaved) and not first[0].is_passed)
    is_certain = alike or (len(first) == 1 and is_clear)
    subjects = tuple(situation.subject(failure.rank, f"its log holds: {error_words(failure.text)}") for failure in first)
    ranks = [failure.rank for failure in first]
    told = "; ".join(f"rank {failure.rank} failed with {error_words(failure.text)}" for failure in first[:MAX_TOLD])
    told = f"all {len(first)} ranks failed with the same error: {error_words(first[0].text)}" if alike else told
    were = "was" if len(bereaved) == 1 else "were"
    lost = f"; {count_ranks(bereaved)} waited for it, lost it as a peer or {were} ended after it"
    followed = lost if is_certain and bereaved else ""
    doubt = "" if is_certain else _doubt(ranks, bereaved)
    is_dead = bool(bereaved) or is_certain
    lines = [situation.view.line(CollectorName.RANK_LOG, failure.rank, failure.text) for failure in first[:MAX_LINES]]
    return Finding(
        kind=Kind.DEAD_RANK if is_dead else Kind.INSUFFICIENT_EVIDENCE,
        cause=(Cause.SIGNAL if all(failure.is_crash for failure in first) else Cause.EXCEPTION) if is_dead else None,
        confidence=Confidence.SUPPORTED if is_certain else Confidence.SUGGESTED,
        culprits=subjects if is_certain else (),
        candidates=() if is_certain else subjects,
        victims=bereaved,
        claim=f"{told}{followed}{doubt}",
        evidence=(*lines, *_what_followed(situation, bereaved)),
        advice=(_advice(first, alike=alike),),
    )


def _are_all_alike(situation: Situation, first: list[Failure]) -> bool:
    """Whether all ranks of the job raised one and the same exception: what they all share is at fault, and none went first."""
    is_whole = len(first) > 1 and len(first) == situation.view.world_size
    return (
        is_whole
        and len({error_words(failure.text) for failure in first}) == 1
        and not any(failure.is_passed for failure in first)
    )


def _doubt(ranks: list[int], bereaved: tuple[int, ...]) -> str:
    if len(ranks) > 1:
        return _together(ranks)
    return "; its log goes on after it" if bereaved else "; nothing says that others waited for it"


def _advice(first: list[Failure], *, alike: bool) -> str:
    if any(_OUT_OF_MEMORY.search(failure.text) for failure in first):
        return _SAVE_MEMORY
    if alike:
        return "All ranks run the same code and the same environment: mend it there, and look at any one rank's log."
    return "Read this rank's own log from its first error on; the errors of the other ranks are consequences."


def error_words(text: str) -> str:
    """An error without time, place and group, which the line of evidence has, and not longer than a claim can bear."""
    return shorten(_BRACKETS.sub("", text), LONGEST_WORDS)


def _together(ranks: list[int]) -> str:
    return f"; their clocks or their lines do not tell which of {name_ranks(ranks)} was the first"


def _what_followed(situation: Situation, bereaved: tuple[int, ...]) -> Iterable[EvidenceLine]:
    return map(log_line, situation.logs.first_lines(bereaved, SECONDARY)[:MAX_TOLD])


def _describe_reported(situation: Situation, ranks: list[int]) -> Finding:
    codes = {rank: exit_code_of(situation, rank) for rank in ranks}
    subjects = tuple(situation.subject(rank, f"its launcher reports exit code {codes[rank]}") for rank in ranks)
    facts = [fact for fact, _ in situation.logs.of_type(LauncherFailure) if fact.rank in codes]
    return Finding(
        kind=Kind.INSUFFICIENT_EVIDENCE,
        confidence=Confidence.SUGGESTED,
        candidates=subjects,
        victims=tuple(sorted(situation.view.ended_ranks - set(ranks))),
        claim=(
            f"the launcher reports that {name_ranks(ranks)} ended with code {', '.join(sorted(map(str, {*codes.values()})))}"
            "; ranks that lose a peer do so, too, and what it calls the root cause is only what it noticed first"
        ),
        evidence=tuple(map(log_line, facts[:MAX_LINES])),
        advice=("Bring the logs of these ranks: their first error tells whose fault it was.",),
    )
