"""Scores as a Markdown table, and its place in the README."""

import re
from collections.abc import Iterable, Iterator, Sequence

from pardbg.watchdog.bench.accuracy import ALL, OURS, PEER, Score
from pardbg.watchdog.errors import InputError

BEGIN, END = "<!-- pardbg bench accuracy: begin -->", "<!-- pardbg bench accuracy: end -->"
HEADS = (
    "cases of",
    "class",
    "jobs",
    "right answer",
    "accused who are guilty",
    "culprits found",
    "causes right",
    "healthy called ill",
    "accused where nobody can be",
    f"{PEER}: accused who are guilty",
    "culprits found",
    "healthy called ill",
    "accused where nobody can be",
    "crashed",
)
_BLOCK = re.compile(rf"{re.escape(BEGIN)}\n.*?{re.escape(END)}", re.DOTALL)


def write_table(scores: Sequence[Score]) -> Iterator[str]:
    """A row for each set and class; the peer's figures beside ours."""
    yield f"| {' | '.join(HEADS)} |"
    yield f"|{'---|' * len(HEADS)}"
    by_key = {(score.tool, score.cases_of, score.kind): score for score in scores}
    for ours in (score for score in scores if score.tool == OURS):
        peer = by_key.get((PEER, ours.cases_of, ours.kind))
        yield f"| {' | '.join((*_ours(ours), *_peers(peer)))} |"


def write_summary(scores: Sequence[Score]) -> Iterator[str]:
    """What a README shows: a row for each set, and all rows folded away below."""
    yield from write_table([score for score in scores if score.kind == ALL])
    yield from ("", "<details><summary>by class</summary>", "", *write_table(scores), "", "</details>")


def into_readme(text: str, lines: Iterable[str]) -> str:
    """The README with the table between its markers replaced.

    Raises:
        InputError: if there are no markers.
    """
    if _BLOCK.search(text) is None:
        raise InputError("the text has no place for the table", remedy=f"put {BEGIN} and {END} where it belongs")
    block = "\n".join((BEGIN, *lines, END))
    return _BLOCK.sub(lambda _: block, text)


def _ours(score: Score) -> tuple[str, ...]:
    return (
        score.cases_of,
        score.kind,
        f"{score.cases:,}",
        _share(score.right, score.cases),
        _rate(score.precision),
        _rate(score.recall),
        _rate(score.cause_accuracy),
        _of(score.false_alarms, score.controls),
        _of(score.elected, score.untold),
    )


def _peers(score: Score | None) -> tuple[str, ...]:
    if score is None:
        return ("-",) * 5
    return (
        _rate(score.precision),
        _rate(score.recall),
        _of(score.false_alarms, score.controls),
        _of(score.elected, score.untold),
        _of(score.crashed, score.cases),
    )


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.3f}" if whole else "-"


def _rate(rate: float | None) -> str:
    return "-" if rate is None else f"{rate:.3f}"


def _of(part: int, whole: int) -> str:
    return f"{part} of {whole}" if whole else "-"
