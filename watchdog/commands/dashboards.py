"""`pardbg dashboards`: Grafana dashboards and alert rules, as files, checked, or pushed."""

import contextlib
import os
import time
from pathlib import Path

import click

from pardbg import __version__
from pardbg.watchdog.errors import InputError

_EXIT_FAULT = 3
_FOLDER = "pardbg"


@click.group(
    epilog="""\b
Examples:
  pardbg dashboards build --out /etc/pardbg
  pardbg dashboards check --prometheus http://localhost:9090
  pardbg dashboards push --url https://grafana.example.org --token-file ~/.grafana-token
"""
)
def dashboards() -> None:
    """Write, check or push the Grafana dashboards and Prometheus alert rules.

    `build` needs nothing but the disk; Grafana can import its files, and Prometheus reads the rules as they are.
    """


@dashboards.command(epilog="\b\nExample:\n  pardbg dashboards build --out /etc/pardbg")
@click.option("--out", required=True, type=click.Path(path_type=Path, file_okay=False), help="Folder to write into.")
def build(out: Path) -> None:
    """Write json/*.json for Grafana, rules/*.yaml for Prometheus, and the runbooks that the alerts point at."""
    from pardbg.dashboards.files import write  # noqa: PLC0415 - `--help` does not wait for it

    for path in write(out):
        click.echo(path)


@dashboards.command(epilog="\b\nExample:\n  pardbg dashboards check --prometheus http://localhost:9090")
@click.option("--prometheus", "url", metavar="URL", help="Ask this Prometheus every query of every panel, variable and alert.")
@click.option("--strict", "is_strict", is_flag=True, help="Panels that are empty in a healthy job without GPUs fail, too.")
@click.pass_context
def check(context: click.Context, url: str | None, *, is_strict: bool) -> None:
    """Say what is wrong with the dashboards and rules of this pardbg; with --prometheus, also what has nothing to show.

    Exit code: 3 if anything is wrong.
    """
    from pardbg.dashboards.files import problems  # noqa: PLC0415

    found = list(problems())
    for problem in found:
        click.echo(problem)
    bad = _evaluate(url, is_strict=is_strict) if url else 0
    if found or bad:
        context.exit(_EXIT_FAULT)
    click.echo("dashboards and rules are as they should be")


def _evaluate(url: str, *, is_strict: bool) -> int:
    """A line for each query; how many are bad."""
    from pardbg.dashboards.alerts import ALERTS  # noqa: PLC0415
    from pardbg.dashboards.evaluate import evaluate_alerts, evaluate_dashboard  # noqa: PLC0415
    from pardbg.dashboards.files import rendered_dashboards  # noqa: PLC0415
    from pardbg.dashboards.prometheus import Prometheus  # noqa: PLC0415

    prometheus, bad = Prometheus(url, time.time()), 0
    boards = [outcome for board in rendered_dashboards() for outcome in evaluate_dashboard(board, prometheus, strict=is_strict)]
    for outcome in (*boards, *evaluate_alerts(ALERTS, prometheus)):
        mark = "BAD " if outcome.is_bad else "ok  "
        click.echo(f"{mark} {outcome.where}: {outcome.error or f'{outcome.series} series'}")
        bad += outcome.is_bad
    return bad


@dashboards.command(
    epilog="""\b
Examples:
  pardbg dashboards push --url https://grafana.example.org --token-file ~/.grafana-token --dry-run
  GRAFANA_URL=http://localhost:3000 GRAFANA_TOKEN=glsa_... pardbg dashboards push
"""
)
@click.option("--url", envvar="GRAFANA_URL", required=True, metavar="URL", help="Grafana's address; or GRAFANA_URL.")
@click.option(
    "--token-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File with the token of a service account; or GRAFANA_TOKEN.",
)
@click.option(
    "--folder", default=_FOLDER, show_default=True, metavar="TITLE", help="Title of the folder, if it has to be made."
)
@click.option(
    "--timeout", "timeout_s", type=click.FloatRange(min=0.1), default=10.0, show_default=True, help="Seconds a request."
)
@click.option("--dry-run", "is_dry", is_flag=True, help="Only look, and say what would be done.")
def push(url: str, token_file: Path | None, folder: str, timeout_s: float, *, is_dry: bool) -> None:
    """Put the dashboards into a Grafana. Pushing again changes nothing; the alert rules go to Prometheus as files.

    Needs grafana-client: pip install 'pardbg[grafana]', in an environment of its own, since it replaces urllib3.
    """
    from pardbg.dashboards.files import rendered_dashboards  # noqa: PLC0415
    from pardbg.dashboards.pushing import Grafana  # noqa: PLC0415

    with contextlib.closing(Grafana(url, _token(token_file), timeout_s=timeout_s)) as grafana:
        for step in grafana.push(rendered_dashboards(), folder=folder, message=f"pardbg {__version__}", is_dry=is_dry):
            would_be = "would be " if is_dry and step.done != "unchanged" else ""
            click.echo(f"{would_be}{step.done}: {step.what} {step.url}".rstrip())


def _token(file: Path | None) -> str:
    """From the file, else the environment; never from the command line, which everybody can read."""
    if file is None:
        token = os.environ.get("GRAFANA_TOKEN", "")
    else:
        try:
            token = file.read_text(encoding="ascii")
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "not plain text"
            raise InputError(
                f"cannot read the token in {file}: {why}", remedy="name a file that holds the token alone"
            ) from error
    if not token.strip():
        raise InputError("no token for Grafana", remedy="give --token-file FILE, or set GRAFANA_TOKEN")
    return token.strip()
