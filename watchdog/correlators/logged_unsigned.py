"""An error of a rank's own in a log that does not say whose it is: what failed is told, and nobody is accused.

That it ended its rank is known where the process died of it, where a launcher says that one failed, or where others lost a peer
or waited; else it may have been caught.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from pardbg.watchdog.correlators import dead_rank, logged_desync
from pardbg.watchdog.correlators.log_words import MAX_LINES, log_line, sees_waits
from pardbg.watchdog.correlators.logged_failure import LONGEST_WORDS, error_words
from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.graph.log_facts import GAVE_UP
from pardbg.watchdog.model.evidence import LogTraceback
from pardbg.watchdog.model.log_event import SECONDARY, LauncherFailure, OwnFailure
from pardbg.watchdog.model.names import Cause, CollectorName, Confidence, Kind
from pardbg.watchdog.model.report import EvidenceLine, Finding
from pardbg.watchdog.model.text import shorten

MAX_TOLD = 3


@dataclass(frozen=True)
class _Error:
    """One error of nobody knows whom. ``is_own``: it does not say that others may be the reason."""

    words: str
    line: EvidenceLine
    is_own: bool = True
    is_end: bool = False
    is_crash: bool = False


def correlate(situation: Situation) -> Iterable[Finding]:
    """At most one finding, where nothing better than logs was seen and no error is known to be a certain rank's."""
    if sees_waits(situation) or situation.own_failures or situation.doubtful_failures:
        return
    errors = [*_raised(situation), *_told(situation)]
    if errors and not any(dead_rank.correlate(situation)) and not any(logged_desync.correlate(situation)):
        yield _describe(situation, errors)


def _raised(situation: Situation) -> Iterable[_Error]:
    for item in situation.view.evidence:
        seen = item.observation
        if not isinstance(seen, LogTraceback) or item.rank is not None or seen.is_consequence or seen.is_passed:
            continue
        where = f", raised at {seen.where}" if seen.where else ""
        words = f"{shorten(seen.exception, LONGEST_WORDS)}{where}"
        text = f"{seen.exception}{where}" + (f"; further exceptions: {'; '.join(seen.others)}" if seen.others else "")
        line = EvidenceLine(
            source=CollectorName.RANK_LOG, rank=None, host=item.host, at=item.observed_at, text=text, origin=item.origin
        )
        yield _Error(words, line, is_own=not (seen.is_doubtful or seen.is_caught or seen.others))


def _told(situation: Situation) -> Iterable[_Error]:
    """Errors of devices and crashes; those after a wait that was given up may come of the abort."""
    raised = [item.observation.exception for item in situation.view.evidence if isinstance(item.observation, LogTraceback)]
    for fact in situation.logs.facts:
        event = fact.event
        if fact.rank is None and isinstance(event, GAVE_UP):
            return
        if fact.rank is not None or not isinstance(event, OwnFailure) or event.is_survived:
            continue
        if not any(event.text[:LONGEST_WORDS] in text or text[:LONGEST_WORDS] in event.text for text in raised):
            yield _Error(
                error_words(event.text),
                log_line(fact),
                is_end=event.is_fatal or bool(event.signal),
                is_crash=bool(event.signal),
            )


def _describe(situation: Situation, errors: list[_Error]) -> Finding:
    logs = situation.logs
    ended = any(error.is_end for error in errors)
    failed = any(event.code > 0 for _, event in logs.of_type(LauncherFailure))
    missed = any(isinstance(fact.event, SECONDARY) for fact in logs.facts)
    is_dead = any(error.is_own for error in errors) and (ended or failed or missed)
    told = "; ".join(error.words for error in errors[:MAX_TOLD])
    doubt = "" if is_dead else ", and whether that ended it is not told"
    return Finding(
        kind=Kind.DEAD_RANK if is_dead else Kind.INSUFFICIENT_EVIDENCE,
        cause=(Cause.SIGNAL if all(error.is_crash for error in errors) else Cause.EXCEPTION) if is_dead else None,
        confidence=Confidence.SUGGESTED,
        victims=tuple(sorted({*logs.bereaved, *situation.view.bereaved_ranks})),
        claim=f"a rank that the log does not name failed with {told}{doubt}",
        evidence=tuple(error.line for error in errors[:MAX_LINES]),
        advice=("Bring logs that say whose a line is: one file a rank (torchrun --log-dir), or of torch 2.2 and newer.",),
    )
