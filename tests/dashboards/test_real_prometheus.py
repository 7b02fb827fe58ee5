"""Real programs of Prometheus: the rules as promtool plays them, and every query of every panel on a server with a history."""

import subprocess
import time
from dataclasses import replace
from pathlib import Path

from click.testing import CliRunner

from pardbg.dashboards.alerts import ALERTS
from pardbg.dashboards.evaluate import evaluate_alerts, evaluate_dashboard
from pardbg.dashboards.files import RULE_FILE, SHIPPED, rendered_dashboards
from pardbg.dashboards.prometheus import Prometheus
from pardbg.watchdog.commands.dashboards import dashboards
from tests.dashboards.history import needs, serving

PLAYED = Path(__file__).with_name("alerts_test.yaml")


def promtool(*words: str) -> str:
    run = subprocess.run([needs("promtool"), *words], capture_output=True, text=True, check=False, timeout=60)
    assert run.returncode == 0, f"{run.stdout}{run.stderr}"
    return run.stdout


def test_promtool_accepts_the_rules() -> None:
    assert f"SUCCESS: {len(ALERTS)} rules found" in promtool("check", "rules", str(SHIPPED / RULE_FILE))


def test_alerts_fire_when_they_must_and_only_then() -> None:
    assert "SUCCESS" in promtool("test", "rules", str(PLAYED))


def test_every_query_has_something_to_show_and_planted_faults_are_told() -> None:
    now_s = time.time()
    with serving(now_s) as url:
        prometheus = Prometheus(url, now_s)
        outcomes = [one for board in rendered_dashboards() for one in evaluate_dashboard(board, prometheus, strict=True)]
        assert [outcome for outcome in outcomes if outcome.is_bad] == []
        assert len(outcomes) > 40
        alerts = {outcome.where: outcome.series for outcome in evaluate_alerts(ALERTS, prometheus)}
        fired = {"PardbgJobHung", "PardbgAgentDown", "PardbgMoeDropRateSpike"}
        assert alerts == {alert.name: int(alert.name in fired) for alert in ALERTS}

        board = rendered_dashboards()[0]
        board["panels"][1]["targets"][0]["expr"] = 'max(pardbg_job_ranks{job_id="nobody"})'
        board["panels"][2]["targets"][0]["expr"] = "max(pardbg_job_ranks"
        empty, refused = [outcome for outcome in evaluate_dashboard(board, prometheus, strict=False) if outcome.is_bad]
        assert (empty.series, empty.error) == (0, "")
        assert "parse error" in refused.error
        assert next(evaluate_alerts([replace(ALERTS[0], expr="(")], prometheus)).is_bad

        checked = CliRunner().invoke(dashboards, ["check", "--prometheus", url, "--strict"])
        assert checked.exit_code == 0, checked.output
        assert "BAD" not in checked.output
