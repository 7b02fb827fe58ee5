"""The text for a terminal: width, copy and paste, colour."""

import re

import pytest
from tests.outputs.samples import SAMPLES

from pardbg.watchdog.model.report import Report
from pardbg.watchdog.outputs.terminal import render_terminal

BENIGN = {name: report for name, report in SAMPLES.items() if name != "hostile"}


@pytest.mark.parametrize("report", BENIGN.values(), ids=BENIGN)
@pytest.mark.parametrize("width", [60, 80, 132])
def test_only_verbatim_lines_overflow(report: Report, width: int) -> None:
    origins = [line.origin for line in report.verdict.evidence] if report.verdict else []
    commands = [action.command for action in report.verdict.actions] if report.verdict else []
    divergence = report.verdict.first_divergence if report.verdict else None
    places = [side.where for side in divergence.sides] if divergence else []
    too_long = [line.strip() for line in render_terminal(report, width=width).splitlines() if len(line) > width]
    assert set(too_long) <= {*origins, *commands, *places}


@pytest.mark.parametrize("report", BENIGN.values(), ids=BENIGN)
@pytest.mark.parametrize("width", [40, 80])
def test_commands_stay_on_one_line(report: Report, width: int) -> None:
    lines = [line.strip() for line in render_terminal(report, width=width).splitlines()]
    for action in report.verdict.actions if report.verdict else ():
        assert action.command in lines


@pytest.mark.parametrize("report", SAMPLES.values(), ids=SAMPLES)
def test_text_holds_no_control_character(report: Report) -> None:
    assert not re.search(r"[^\n\x20-\x7e]", render_terminal(report))


@pytest.mark.parametrize("report", SAMPLES.values(), ids=SAMPLES)
def test_colour_changes_nothing_but_colour(report: Report) -> None:
    coloured = render_terminal(report, color=True)
    assert coloured.startswith("\x1b[1;3")
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == render_terminal(report)


def test_same_report_gives_the_same_text() -> None:
    assert render_terminal(SAMPLES["device_stuck"]) == render_terminal(SAMPLES["device_stuck"])
