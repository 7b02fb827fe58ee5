"""`pardbg incidents list|show|export`: what the agent's watchdog has found and kept."""

import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import click

from pardbg.watchdog.errors import InputError

_STATE = click.option(
    "--state",
    "folder",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The agent's state folder, if it is not the usual one (/var/lib/pardbg for root, else ~/.local/state/pardbg/HOST).",
)

_NONE = "The agent has found no hang."
_NONE_ON_DISK = "No incident is on the disk."


@click.group(
    epilog="""\b
Examples:
  pardbg incidents list
  pardbg incidents show 20261130-0615
  pardbg incidents export 20261130-061500-4f2a /tmp/hang
  pardbg analyze /tmp/hang --html hang.html
"""
)
def incidents() -> None:
    """Show the hangs that the agent of this machine has found and kept.

    ID may be cut short as long as it means one incident. Reading does not disturb the agent.
    """


@incidents.command(
    name="list", epilog="\b\nExample:\n  pardbg incidents list --json | jq '.incidents[].report.verdict.claim'\n"
)
@_STATE
@click.option("--json", "as_json", is_flag=True, help="Print them as one JSON object (pardbg.incidents/1), with whole reports.")
def list_(folder: Path | None, as_json: bool) -> None:  # noqa: FBT001 - a flag of the command line
    """List all incidents, the oldest first."""
    from pardbg.watchdog.outputs.as_incidents import render_incidents  # noqa: PLC0415 - not for `--help`
    from pardbg.watchdog.outputs.incidents_text import list_incidents  # noqa: PLC0415

    if folder is None and (nothing := _no_agent_yet()):
        click.echo(nothing, err=as_json)
        for piece in render_incidents(()) if as_json else ():
            click.echo(piece, nl=False)
        return
    if doubt := _in_memory_only(folder):
        click.echo(f"pardbg: {doubt}", err=True)
    with _reading(folder) as reading:
        if as_json:
            for piece in render_incidents(reading.all()):
                click.echo(piece, nl=False)
        else:
            lines = list(list_incidents(reading.all(), time.time(), _width()))
            click.echo("\n".join(lines or [_NONE_ON_DISK if doubt else _NONE]))
        _warn(reading.unreadable)


@incidents.command(epilog="\b\nExample:\n  pardbg incidents show 20261130-061500-4f2a\n")
@click.argument("incident_id", metavar="ID")
@_STATE
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON, with the whole report (pardbg.report/1).")
def show(incident_id: str, folder: Path | None, as_json: bool) -> None:  # noqa: FBT001
    """Show the report of an incident, and what became of it."""
    from pardbg.watchdog.outputs.as_incidents import render_incident  # noqa: PLC0415
    from pardbg.watchdog.outputs.incidents_text import describe_incident  # noqa: PLC0415
    from pardbg.watchdog.outputs.terminal import render_terminal  # noqa: PLC0415

    with _reading(folder) as reading:
        incident, first = reading.get(incident_id)
        evidence = [str(path) for path in (first, reading.latest_of(incident)) if path is not None]
    if as_json:
        click.echo(render_incident(incident), nl=False)
        return
    is_colored = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    about = describe_incident(incident, evidence, time.time(), _width())
    click.echo(f"{about}\n{render_terminal(incident.report, width=_width(), color=is_colored)}", nl=False, color=True)


@incidents.command(
    epilog="\b\nExample:\n  pardbg incidents export 20261130-061500-4f2a /tmp/hang && pardbg analyze /tmp/hang\n"
)
@click.argument("incident_id", metavar="ID")
@click.argument("target", metavar="DIR", type=click.Path(path_type=Path))
@_STATE
def export(incident_id: str, target: Path, folder: Path | None) -> None:
    """Copy the evidence of an incident (its first scan's) into DIR, for `pardbg analyze`. DIR must be empty or not there."""
    from pardbg.watchdog.incidents.exporting import export_evidence  # noqa: PLC0415

    with _reading(folder) as reading:
        incident, evidence = reading.get(incident_id)
    if evidence is None:
        raise InputError(
            f"no evidence of {incident.id} is kept any more", remedy=f"its report is: pardbg incidents show {incident.id}"
        )
    count = export_evidence(evidence, target)
    click.echo(f"{count} files of {incident.id} are in {target}: pardbg analyze {target}")


def _no_agent_yet() -> str:
    """Words, if no agent has ever run here as this user."""
    from pardbg.watchdog.agent.settings import usual_state_folder  # noqa: PLC0415

    usual = usual_state_folder()
    return "" if usual.exists() else f"No agent has run here: there is no {usual}. Start one: pardbg agent"


def _reading(folder: Path | None) -> Any:
    from pardbg.watchdog.agent.settings import usual_state_folder  # noqa: PLC0415
    from pardbg.watchdog.incidents.reading import opened  # noqa: PLC0415

    return opened(folder or usual_state_folder())


def _in_memory_only(folder: Path | None) -> str:
    from pardbg.watchdog.agent.settings import usual_state_folder  # noqa: PLC0415
    from pardbg.watchdog.incidents.reading import in_memory_only  # noqa: PLC0415

    return in_memory_only(folder or usual_state_folder())


def _warn(unreadable: set[str]) -> None:
    if unreadable:
        click.echo(f"pardbg: left out, for another version has written them: {', '.join(sorted(unreadable))}", err=True)


def _width() -> int:
    return shutil.get_terminal_size((80, 24)).columns if sys.stdout.isatty() else 80
