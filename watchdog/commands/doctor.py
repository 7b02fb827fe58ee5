"""`pardbg doctor`: what on this machine would keep pardbg from seeing."""

import shutil
import sys

import click

from pardbg.watchdog.commands.progress import show_progress


@click.command(
    epilog="""\b
Examples:
  pardbg doctor
  pardbg doctor --json | jq '.checks[] | select(.state != "ok")'
"""
)
@click.option("--json", "as_json", is_flag=True, help="Print the checks as one JSON object (pardbg.doctor/1).")
@click.pass_context
def doctor(context: click.Context, as_json: bool) -> None:  # noqa: FBT001 - a flag of the command line
    """Say what on this machine would keep pardbg from seeing a job, what that costs, and the remedy.

    Looks at privileges, settings, containers, running jobs and versions, and tries on a process of its own what a scan does to
    ranks; jobs are read, not touched. Takes about a second.

    The state of a check: "ok"; "limits": a scan says less; "blocks": what a verdict rests on cannot be seen; "unknown": it
    cannot be told from here. Exit code: 3 if anything limits or blocks, else 0.
    """
    from pardbg.collectors.node.look_around import look_around  # noqa: PLC0415 - `--help` does not wait for it
    from pardbg.watchdog.doctor.table import examine  # noqa: PLC0415
    from pardbg.watchdog.doctor.text import render_json, render_text  # noqa: PLC0415

    with show_progress(sys.stderr) as progress:
        progress("looking around")
        examination = examine(look_around())
    width = shutil.get_terminal_size((80, 24)).columns if sys.stdout.isatty() else 80
    click.echo(render_json(examination) if as_json else render_text(examination, width=width), nl=False)
    context.exit(examination.exit_code)
