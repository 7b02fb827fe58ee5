"""Dumps of an earlier run that lie among those of this one accuse nobody."""

from pardbg.watchdog.model.names import Kind
from tests.collectors.dumps import Entry, make_entry, outstanding
from tests.diagnosis.test_hand_made import blamed, report_of

HOUR_NS = 3_600_000_000_000
START_NS = 1_700_000_000_000_000_000


def ring(*, began_ns: int, done: int, waits: bool) -> list[Entry]:
    """Collectives 1 to ``done`` of the world, one a millisecond, and one that is outstanding."""
    entries = [
        make_entry(
            number,
            time_created_ns=began_ns + number * 1_000_000,
            time_discovered_completed_ns=began_ns + number * 1_000_000 + 500,
        )
        for number in range(done)
    ]
    return [*entries, *([outstanding(done, time_created_ns=began_ns + done * 1_000_000)] if waits else [])]


def test_a_dump_that_ended_a_week_before_the_others_began_accuses_nobody() -> None:
    today = ring(began_ns=START_NS + 168 * HOUR_NS, done=40, waits=True)
    report = report_of({0: today, 1: today, 2: today, 3: ring(began_ns=START_NS, done=12, waits=False)})
    assert report.findings[0].kind is Kind.INSUFFICIENT_EVIDENCE
    assert blamed(report) == set()
    assert {subject.rank for subject in report.findings[0].candidates} == {3}
    assert [(item.rank, "earlier run" in item.detail) for item in report.unknowns] == [(3, True)]


def test_a_rank_that_went_missing_three_hours_before_its_peer_issued_the_last_operation_stays_accused() -> None:
    here, late = ring(began_ns=START_NS, done=12, waits=True), ring(began_ns=START_NS, done=12, waits=True)
    late[-1]["time_created_ns"] = START_NS + 3 * HOUR_NS  # its own work took it that long; its ring reaches back to the others
    report = report_of({0: here, 1: here, 2: late, 3: ring(began_ns=START_NS, done=12, waits=False)})
    assert report.findings[0].kind is Kind.MISSING_PARTICIPANT
    assert blamed(report) == {3}


def test_a_gap_of_half_an_hour_is_no_other_run() -> None:
    now = ring(began_ns=START_NS, done=12, waits=True)
    now[-1]["time_created_ns"] = START_NS + HOUR_NS // 2
    report = report_of({0: now, 1: now, 2: now, 3: ring(began_ns=START_NS, done=12, waits=False)})
    assert blamed(report) == {3}
