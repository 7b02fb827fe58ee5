"""From paths to a report: collect, view, judge. What every command that diagnoses files calls."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

import msgspec

from pardbg.collectors.files import collect_files
from pardbg.watchdog.correlators.situation import Situation
from pardbg.watchdog.errors import InputError
from pardbg.watchdog.judge.judge import Circumstances, judge_situation
from pardbg.watchdog.model.report import Report
from pardbg.watchdog.store.view import EvidenceView

MAX_NAMED_FILES = 5
OWN_FILES = frozenset({"truth.json", "report.json", "report.html", "report.md"})  # what pardbg itself writes


@dataclass(frozen=True)
class Diagnosed:
    """A report, and what it was derived from."""

    report: Report
    situation: Situation


class InterruptedAnalysis(Exception):  # noqa: N818 - nothing went wrong
    """Ctrl-C came before everything was read. ``report`` is what is known so far."""

    def __init__(self, report: Report) -> None:
        super().__init__("interrupted")
        self.report = report


def _silent(_message: str) -> None:
    """Progress for callers that show none."""


def analyze_paths(paths: Sequence[Path], progress: Callable[[str], None] = _silent) -> Report:
    """Diagnoses a job from files.

    Cost: reads every file once, in child processes that are given up after a deadline.

    Raises:
        InputError: if a path does not exist, or nothing in it is evidence.
        InterruptedAnalysis: after Ctrl-C, with the report of what had been read by then.
    """
    return diagnose_paths(paths, progress).report


def diagnose_paths(paths: Sequence[Path], progress: Callable[[str], None] = _silent) -> Diagnosed:
    """The same, with what the report was derived from."""
    started = time.monotonic()
    collected = collect_files(paths, progress)
    progress("correlating")
    notes = _name_unrecognised(collected.unrecognised)
    if not collected.evidence:
        why = "; ".join(notes) or "they are empty, or say nothing"
        raise InputError(
            f"no file in {', '.join(map(str, paths))} is evidence of a job ({why})",
            remedy="give flight-recorder dumps, py-spy stacks, rank logs or job.json",
        )
    situation = Situation.of(EvidenceView.of(collected.evidence))
    report = judge_situation(situation, Circumstances(decided_at=_now(), notes=notes))
    report = msgspec.structs.replace(report, took_s=round(time.monotonic() - started, 3))
    if collected.is_interrupted:
        raise InterruptedAnalysis(report)
    return Diagnosed(report, situation)


def _name_unrecognised(files: Sequence[str]) -> tuple[str, ...]:
    files = [file for file in files if Path(file).name not in OWN_FILES]
    if not files:
        return ()
    named = ", ".join(files[:MAX_NAMED_FILES])
    more = f" and {len(files) - MAX_NAMED_FILES} more" if len(files) > MAX_NAMED_FILES else ""
    return (f"not recognised, and left out: {named}{more}",)


def _now() -> str:
    return datetime.now(tz=timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z")
