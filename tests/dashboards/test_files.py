"""What is shipped is what the code generates, and the rules for it find what is planted."""

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pardbg.dashboards.alerts import ALERTS
from pardbg.dashboards.files import RUNBOOK_FILE, SHIPPED, generate, problems, rendered_dashboards, write
from pardbg.dashboards.lint import lint_alerts, lint_dashboard
from pardbg.watchdog.commands.dashboards import dashboards


def test_committed_files_are_what_is_generated_and_break_no_rule() -> None:
    """If this fails: `pardbg dashboards build --out dashboards`, look at the difference, commit it."""
    assert list(problems()) == []
    assert CliRunner().invoke(dashboards, ["check"]).exit_code == 0


def test_build_writes_what_is_shipped(tmp_path: Path) -> None:
    built = CliRunner().invoke(dashboards, ["build", "--out", str(tmp_path / "new")])
    assert built.exit_code == 0
    written = [Path(line) for line in built.stdout.splitlines()]
    assert len(written) == 5
    for path in written:
        assert path.read_bytes() == (SHIPPED / path.relative_to(tmp_path / "new")).read_bytes()


def test_check_names_the_file_that_was_edited_by_hand(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "json" / "pardbg-job.json").write_text("{}")
    (tmp_path / "rules" / "pardbg-alerts.yaml").unlink()
    assert [problem.split(" is not")[0] for problem in problems(tmp_path)] == [
        str(tmp_path / "json" / "pardbg-job.json"),
        str(tmp_path / "rules" / "pardbg-alerts.yaml"),
    ]


def test_generated_twice_is_the_same() -> None:
    assert generate() == generate()


Board = dict[str, Any]


def first_panel(board: Board) -> Board:
    panel: Board = next(panel for panel in board["panels"] if panel["type"] != "row")
    return panel


def plant(key: str, value: Any) -> Callable[[Board], None]:
    return lambda board: first_panel(board).__setitem__(key, value)


def plant_expr(expr: str) -> Callable[[Board], None]:
    return lambda board: first_panel(board)["targets"][0].__setitem__("expr", expr)


@pytest.mark.parametrize(
    ("plant_fault", "said"),
    [
        (plant("title", ""), "no title"),
        (plant("description", ""), "no description"),
        (plant("id", 1), "two panels with one id"),
        (plant("datasource", {"uid": "abc"}), "a datasource that is not ${datasource}"),
        (lambda board: first_panel(board)["fieldConfig"]["defaults"].__setitem__("unit", "parsecs"), "no known unit"),
        (plant_expr("max(pardbg_rank_silence_seconds)"), "no metric is called pardbg_rank_silence_seconds"),
        (plant_expr("sum(rate(pardbg_rank_steps_total[5m]))"), "rate over 5m, not over $__rate_interval"),
        (plant_expr("max(pardbg_job_ranks"), "not PromQL"),
        (plant_expr('max(pardbg_job_ranks{job_id="$jobid"})'), "no variable is called 'jobid'"),
        (lambda board: board["templating"]["list"].pop(0), "no variable for the datasource"),
        (lambda board: board.pop("uid"), "no uid"),
    ],
)
def test_planted_fault_of_a_dashboard_is_found(plant_fault: Callable[[Board], None], said: str) -> None:
    board = copy.deepcopy(rendered_dashboards()[0])
    assert list(lint_dashboard(board)) == []
    plant_fault(board)
    assert any(said in problem for problem in lint_dashboard(board)), list(lint_dashboard(board))


def test_alert_without_a_runbook_or_a_sentence_is_found() -> None:
    runbooks = (SHIPPED / RUNBOOK_FILE).read_text(encoding="utf-8")
    bad = replace(ALERTS[0], name="PardbgNew", summary="Job hangs", expr="pardbg_job_stat == 1")
    assert list(lint_alerts([bad], runbooks)) == [
        "PardbgNew: no heading in the runbooks",
        "PardbgNew: the summary is no sentence",
        "PardbgNew: no metric is called pardbg_job_stat",
    ]


def test_no_panel_lies_over_another_and_all_are_within_the_width() -> None:
    for board in rendered_dashboards():
        taken: set[tuple[int, int]] = set()
        for panel in board["panels"]:
            place = panel["gridPos"]
            cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
            assert not cells & taken, panel["title"]
            assert place["x"] + place["w"] <= 24
            taken |= cells


def test_rules_are_yaml_of_which_json_is_a_part() -> None:
    """Every quoted value is one that JSON reads, too."""
    lines = generate()["rules/pardbg-alerts.yaml"].splitlines()
    quoted = [
        line.split(": ", 1)[1] for line in lines if line.lstrip().startswith(("summary:", "description:", "runbook_url:"))
    ]
    assert [json.loads(text) for text in quoted] == [
        text for alert in ALERTS for text in (alert.summary, alert.description, alert.runbook_url)
    ]
