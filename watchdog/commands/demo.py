"""`pardbg demo`: plants a fault in a small real job, scans it, and says whether the verdict names the fault."""

import importlib.util
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pardbg.watchdog.commands.output_options import Destinations
from pardbg.watchdog.commands.progress import show_progress
from pardbg.watchdog.demo.faults import DEFAULT_FAULT, FAULTS, PlantedFault, fault_named
from pardbg.watchdog.errors import PardbgError

if TYPE_CHECKING:  # its module is not for `--help`
    from pardbg.watchdog.scan.scan import Scanned

_PREPARED = (sys.executable, "-m", "pardbg", "run", "--job", "demo", "--")


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
  pardbg demo --fault p2p --prepared
"""
)
@click.option("--list", callback=_list, is_flag=True, is_eager=True, expose_value=False, help="Print every fault and exit.")
@click.option(
    "--fault", "fault_name", metavar="NAME", default=DEFAULT_FAULT, show_default=True, help="What to plant; see --list."
)
@click.option(
    "--out", "folder", type=click.Path(path_type=Path), metavar="DIR", help="Where to write; by default a new folder."
)
@click.option("--prepared", is_flag=True, help="Start the job with `pardbg run`, to see what that adds to the verdict.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as one JSON object (pardbg.report/1).")
@click.pass_context
def demo(context: click.Context, fault_name: str, folder: Path | None, *, prepared: bool, as_json: bool) -> None:
    """Start a small real job with a planted fault, wait until it hangs, and scan it.

    Four ranks on this machine's CPU, plain torchrun and gloo, nothing prepared: what `pardbg scan --job demo` would say from
    another terminal. Takes about twenty seconds. Exit code: 0 when the verdict names the planted fault, else 1. The program,
    report.json, report.html and the evidence stay in the folder.
    """
    fault = fault_named(fault_name)
    if importlib.util.find_spec("torch") is None:
        raise PardbgError("the demo trains with torch, which is not installed", remedy="pip install 'pardbg[demo]'")
    if folder is None:
        folder = Path(tempfile.mkdtemp(prefix=f"pardbg-demo-{fault.name}-"))
    scanned = _diagnose(fault, folder, _PREPARED if prepared else ())
    Destinations(as_json=as_json, html=folder / "report.html", markdown=None, is_strict=False).publish(scanned.report)
    if scanned.is_interrupted:
        raise click.Abort
    is_right = fault.is_named_by(scanned.report)
    click.echo(f"planted: {fault.sentence}", err=True)
    click.echo(f"the verdict {'names it' if is_right else 'does not name it'}; see {folder}", err=True)
    context.exit(0 if is_right else 1)


def _diagnose(fault: PlantedFault, folder: Path, wrapper: tuple[str, ...]) -> "Scanned":
    """Runs the job, scans it while it hangs, ends it, and keeps the evidence with the report."""
    from pardbg.watchdog.commands.scanning import Request, run_scan  # noqa: PLC0415 - `--help` does not wait for it
    from pardbg.watchdog.demo.launch import hung_job  # noqa: PLC0415
    from pardbg.watchdog.scan.saving import make_folder, save_evidence  # noqa: PLC0415

    make_folder(folder, "give another --out, or none")
    with show_progress(sys.stderr) as progress:
        with hung_job(fault, folder, progress, wrapper) as launcher:
            # As `--job demo` would, but for other jobs of this name: there may be several demos on this machine.
            scanned = run_scan(Request(pids=(launcher.pid,)), progress)
        save_evidence(scanned, folder)
    return scanned
