"""The worked example of CONTRIBUTING.md works: one file and one line are a new correlator."""

import re
from pathlib import Path
from types import ModuleType

import pytest

from pardbg.watchdog.correlators import all as listing
from pardbg.watchdog.judge import judge
from pardbg.watchdog.model.names import Cause, Kind
from pardbg.watchdog.sim.recipe import Recipe
from pardbg.watchdog.sim.scenario import simulate
from pardbg.watchdog.store.view import EvidenceView
from tests.diagnosis.diagnosing import WHEN, evidence_of

ROOT = Path(__file__).resolve().parents[1]


def example() -> ModuleType:
    """The example's file, as a module."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    block = re.search(r"   ```python\n(   \"\"\"A process was stopped.*?)   ```", text, re.DOTALL)
    assert block is not None
    module = ModuleType("stopped_process")
    source = "\n".join(line[3:] for line in block[1].splitlines())
    exec(compile(source, "stopped_process.py", "exec"), module.__dict__)  # noqa: S102 - our own document
    return module


def test_one_file_and_one_line_add_a_correlator(monkeypatch: pytest.MonkeyPatch) -> None:
    job = simulate(Recipe(fault="healthy", entries=30))
    job.job["ranks"][3]["process"]["state"] = "T"
    view = EvidenceView.of(evidence_of(job))
    assert judge.judge(view, judge.Circumstances(decided_at=WHEN)).verdict is None

    monkeypatch.setattr(judge, "CORRELATORS", (*listing.CORRELATORS, example().correlate))
    verdict = judge.judge(view, judge.Circumstances(decided_at=WHEN)).verdict

    assert verdict is not None
    assert (verdict.kind, verdict.cause) == (Kind.MISSING_PARTICIPANT, Cause.STOPPED)
    assert [subject.rank for subject in verdict.culprits] == [3]
