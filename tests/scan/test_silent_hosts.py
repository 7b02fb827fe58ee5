"""Of hosts that say nothing: who may be at fault, what is not known of whom and why, and what to do next."""

from dataclasses import replace

import pytest

from pardbg.watchdog.model.evidence import Absence
from pardbg.watchdog.model.names import AbsenceReason, CollectorName, Kind
from pardbg.watchdog.model.reach import HOST, Reach
from pardbg.watchdog.model.report import Report
from pardbg.watchdog.outputs.terminal import render_terminal
from pardbg.watchdog.scan.attaching import Policy
from pardbg.watchdog.scan.scan import Settings, scan
from tests.diagnosis.live_evidence import job_of, waits
from tests.scan.standing_site import StandingSite

LATE = Absence(reason=AbsenceReason.TIMED_OUT, detail="no answer in time")
REFUSED = Absence(reason=AbsenceReason.DENIED, detail="srun: Access/permission denied")
SRUN = Reach(before="srun --jobid=7 -w", question=f"scontrol show node {HOST}")


def report_of(silent: dict[str, Absence], world_size: int = 4, **settings: object) -> Report:
    """Ranks 0 and 1 answer, on n1, and wait in a collective of the world."""
    site = StandingSite(job_of(waits(), waits(), world_size=world_size), silent, SRUN)
    chosen = replace(Settings(interval_s=0.1, policy=Policy.NEVER), **settings)  # type: ignore[arg-type]  # its fields
    return scan(site, chosen, lambda _: None).report


def recorders(report: Report) -> list[tuple[int | None, str | None, AbsenceReason]]:
    unknowns = (unknown for unknown in report.unknowns if unknown.collector is CollectorName.FLIGHT_RECORDER)
    return [(unknown.rank, unknown.host, unknown.reason) for unknown in unknowns]


def test_only_ranks_that_were_not_seen_may_be_at_fault_and_next_comes_their_host() -> None:
    report = report_of({"n2": LATE})
    verdict = report.verdict
    assert verdict is not None
    assert verdict.kind is Kind.INSUFFICIENT_EVIDENCE
    assert [(subject.rank, subject.host) for subject in verdict.candidates] == [(2, "n2"), (3, "n2")]
    assert "it may be ranks 2-3" in verdict.claim
    assert verdict.victims == (0, 1)
    assert [action.command for action in verdict.actions] == ["scontrol show node n2"]
    assert verdict.advice == ("Scan again once n2 can be looked at: the ranks that were not seen may be there.",)


def test_each_rank_has_its_own_host_and_its_own_reason() -> None:
    report = report_of({"n2": LATE})
    assert recorders(report) == [
        (0, "n1", AbsenceReason.SKIPPED),
        (1, "n1", AbsenceReason.SKIPPED),
        (2, "n2", AbsenceReason.TIMED_OUT),
        (3, "n2", AbsenceReason.TIMED_OUT),
    ]
    text = " ".join(render_terminal(report, width=1000).split())
    assert "flight-recorder: timed-out, ranks 2-3 (2 ranks) on n2 n2 did not answer: no answer in time" in text
    assert "flight-recorder: skipped, ranks 0-1 (2 ranks) on n1 it was left alone: --attach never" in text


@pytest.mark.parametrize(("other", "reason"), [(LATE, AbsenceReason.TIMED_OUT), (REFUSED, AbsenceReason.UNREACHABLE)])
def test_where_several_hosts_say_nothing_no_rank_is_put_on_one_of_them(other: Absence, reason: AbsenceReason) -> None:
    report = report_of({"n2": LATE, "n3": other}, world_size=6)
    assert recorders(report)[2:] == [(rank, None, reason) for rank in range(2, 6)]
    assert "on one of n[2-3], which did not answer" in report.unknowns[-1].detail
    assert report.verdict is not None
    assert [action.command for action in report.verdict.actions] == ["scontrol show node n2", "scontrol show node n3"]


def test_no_command_has_a_gap_where_nobody_knows_the_process() -> None:
    report = report_of({})
    assert report.verdict is not None
    assert [action.command for action in report.verdict.actions] == [None, None]
    assert "PID" not in render_terminal(report)


def test_time_that_was_too_short_to_look_on_is_said() -> None:
    young = replace(waits(), still_s=1.0)
    site = StandingSite(job_of(young, young, world_size=4), {"n2": LATE})
    report = scan(site, Settings(timeout_s=0.2), lambda _: None).report
    assert report.notes[:1] == ("--timeout 0.2 left no time to look on",)
    assert report.notes[1].startswith("still for 1.0 s")
