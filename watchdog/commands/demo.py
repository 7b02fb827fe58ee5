"""`pardbg demo`: plants a fault in a small real job, diagnoses it, and says whether the verdict names the fault."""

import importlib.util
import sys
import tempfile
from pathlib import Path

import click

from pardbg.watchdog.commands.output_options import Destinations
from pardbg.watchdog.commands.progress import show_progress
from pardbg.watchdog.demo.faults import DEFAULT_FAULT, FAULTS, PlantedFault, fault_named
from pardbg.watchdog.errors import InputError, PardbgError
from pardbg.watchdog.model.report import Report


def _list(context: click.Context, _: click.Parameter, is_wanted: bool) -> None:  # noqa: FBT001 - click's callback form
    if is_wanted and not context.resilient_parsing:
        click.echo("\n".join(f"{fault.name:<18}{fault.sentence}" for fault in FAULTS))
        context.exit()


@click.command(
    epilog="""\b
Examples:
  pardbg demo
  pardbg demo --list
  pardbg demo --fault order --out /tmp/order
"""
)
@click.option("--list", callback=_list, is_flag=True, is_eager=True, expose_value=False, help="Print every fault and exit.")
@click.option(
    "--fault", "fault_name", metavar="NAME", default=DEFAULT_FAULT, show_default=True, help="What to plant; see --list."
)
@click.option(
    "--out", "folder", type=click.Path(path_type=Path), metavar="DIR", help="Where to write; by default a new folder."
)
@click.option("--json", "as_json", is_flag=True, help="Print the report as one JSON object (pardbg.report/1).")
@click.pass_context
def demo(context: click.Context, fault_name: str, folder: Path | None, *, as_json: bool) -> None:
    """Start a small real job with a planted fault and diagnose it.

    Four ranks on this machine's CPU, plain torchrun and gloo, about ten seconds. Exit code: 0 when the verdict names the
    planted fault, else 1. The evidence, report.json and report.html stay in the folder.
    """
    fault = fault_named(fault_name)
    if importlib.util.find_spec("torch") is None:
        raise PardbgError("the demo trains with torch, which is not installed", remedy="pip install 'pardbg[demo]'")
    if folder is not None and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} is not an empty folder", remedy="give another --out, or none")
    folder = folder or Path(tempfile.mkdtemp(prefix=f"pardbg-demo-{fault.name}-"))
    report = _diagnose(fault, folder / "evidence")
    Destinations(as_json=as_json, html=folder / "report.html", markdown=None, is_strict=False).publish(report)
    is_right = fault.is_named_by(report)
    click.echo(f"planted: {fault.sentence}", err=True)
    click.echo(f"the verdict {'names it' if is_right else 'does not name it'}; see {folder}", err=True)
    context.exit(0 if is_right else 1)


def _diagnose(fault: PlantedFault, evidence: Path) -> Report:
    """Runs the job, analyses what it left in ``evidence``, and keeps the report beside it."""
    from pardbg.watchdog.commands.analysis import analyze_paths  # noqa: PLC0415 - `--help` does not wait for it
    from pardbg.watchdog.demo.launch import run_planted_job  # noqa: PLC0415
    from pardbg.watchdog.outputs.as_json import render_json  # noqa: PLC0415

    with show_progress(sys.stderr) as progress:
        try:
            run_planted_job(fault, evidence, progress)
        except OSError as error:
            raise PardbgError(
                f"cannot run the job with {evidence}: {error.strerror or error}", remedy="give another --out"
            ) from error
        report = analyze_paths([evidence], progress)
    (evidence.parent / "report.json").write_text(render_json(report), encoding="utf-8")
    return report
