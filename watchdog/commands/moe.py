"""`pardbg moe`: how each layer routes, and what is ill, from files or from a job that runs here."""

import sys
from pathlib import Path
from typing import Any

import click

from pardbg.watchdog.commands.analyze import read_paths
from pardbg.watchdog.commands.output_options import screen_width, wants_color, write_text
from pardbg.watchdog.commands.progress import show_progress

LAYERS_SHOWN = 16
FILE = click.Path(dir_okay=False, path_type=Path)


@click.command(
    epilog="""\b
Examples:
  pardbg moe routing.jsonl                         # an object a step and layer: step, layer, counts
  pardbg moe --job demo
  pardbg moe --pid 4711 --layers 4
  pardbg moe logs/ --json | jq '.layers[0]'
"""
)
@click.argument("paths", metavar="[PATH]...", nargs=-1, callback=read_paths)
@click.option("--job", metavar="ID", help="A job that `pardbg run` started, with ranks on this machine; named as for scan.")
@click.option(
    "--pid", "pids", type=click.IntRange(min=1), multiple=True, metavar="PID", help="A process of the job. Repeatable."
)
@click.option(
    "--layers",
    "most",
    type=click.IntRange(min=1),
    default=LAYERS_SHOWN,
    show_default=True,
    metavar="N",
    help="Show so many layers, the worst ones; the JSON has all.",
)
@click.option("--html", type=FILE, metavar="FILE", help="Write the report as a page, too, with all layers.")
@click.option("--md", "markdown", type=FILE, metavar="FILE", help="Write the report as Markdown, too.")
@click.option("--json", "as_json", is_flag=True, help="Print a report (pardbg.report/1) with `layers` as one JSON object.")
@click.pass_context
def moe(  # noqa: PLR0913 - an option each
    context: click.Context,
    /,
    paths: tuple[Path, ...],
    *,
    most: int,
    as_json: bool,
    html: Path | None,
    markdown: Path | None,
    **job: Any,
) -> None:
    """Say how the layers of a model with experts route: the load, drops, experts without tokens, and since when.

    PATH is a file or a folder with routing counts (JSON lines; any framework can log them). Of a job, what the probes of its
    ranks on this machine have counted is read; the ranks notice nothing. A job that has ended is read from what it left. Exit
    code: 0 well, 3 ill, 4 too little was counted to tell.
    """
    if bool(paths) + (job["job"] is not None) + bool(job["pids"]) != 1:
        raise click.UsageError("say what to look at: exactly one of PATH, --job ID and --pid PID")
    from pardbg.watchdog.commands.routing_health import look_at_files, look_at_job  # noqa: PLC0415 - not for `--help`

    with show_progress(sys.stderr) as progress:
        health = look_at_files(paths, progress) if paths else look_at_job(**job, progress=progress)
    is_plain = not (sys.stdout.encoding or "").lower().startswith("utf")
    text = health.as_json() if as_json else health.as_text(most, screen_width(), color=wants_color(), is_plain=is_plain)
    click.echo(text, nl=not text.endswith("\n"), color=True)
    if html is not None:
        write_text(html, health.as_html())
    if markdown is not None:
        write_text(markdown, health.as_markdown(most))
    context.exit(health.exit_code)
