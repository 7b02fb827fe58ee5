"""The files that are shipped: generated from the code, committed beside it, and part of the package."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pardbg.dashboards.agents import AGENTS_DASHBOARD
from pardbg.dashboards.alerts import ALERTS
from pardbg.dashboards.grafana_json import render_dashboard
from pardbg.dashboards.job import JOB_DASHBOARD
from pardbg.dashboards.lint import lint_alerts, lint_dashboard
from pardbg.dashboards.moe import MOE_DASHBOARD
from pardbg.dashboards.rule_file import render_rules

DASHBOARDS = (JOB_DASHBOARD, MOE_DASHBOARD, AGENTS_DASHBOARD)
RULE_FILE = "rules/pardbg-alerts.yaml"
RUNBOOK_FILE = "runbooks.md"
SHIPPED = Path(__file__).parent


def generate() -> dict[str, str]:
    """Path below the folder -> content."""
    boards = {f"json/{dashboard.uid}.json": render_dashboard(dashboard) for dashboard in DASHBOARDS}
    return {**boards, RULE_FILE: render_rules(ALERTS)}


def rendered_dashboards() -> list[dict[str, Any]]:
    """The dashboards as Grafana takes them."""
    return [json.loads(render_dashboard(dashboard)) for dashboard in DASHBOARDS]


def problems(folder: Path = SHIPPED) -> Iterator[str]:
    """What is wrong: files below the folder that are not what the code generates, and broken rules."""
    for name, content in generate().items():
        path = folder / name
        if not path.is_file() or path.read_text(encoding="utf-8") != content:
            yield f"{path} is not what is generated: pardbg dashboards build --out {folder}"
    for dashboard in rendered_dashboards():
        yield from lint_dashboard(dashboard)
    yield from lint_alerts(ALERTS, (folder / RUNBOOK_FILE).read_text(encoding="utf-8"))


def write(folder: Path) -> list[Path]:
    """Writes all files, with the runbooks, below a folder; the paths.

    Raises:
        OSError: if one cannot be written.
    """
    paths = []
    for name, content in {**generate(), RUNBOOK_FILE: (SHIPPED / RUNBOOK_FILE).read_text(encoding="utf-8")}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
        paths.append(path)
    return paths
