"""The options of every command that answers with a report, and where the report then goes."""

import functools
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from pardbg.watchdog.errors import InputError
from pardbg.watchdog.model.report import Report
from pardbg.watchdog.model.routing_health import LayerHealth

COURSE_CHARACTERS = 16
"""How wide the course of a layer's figure is in a table."""


@dataclass(frozen=True)
class Destinations:
    """What to write besides the text on stdout. ``is_strict`` makes a slow phase a fault."""

    as_json: bool
    html: Path | None
    markdown: Path | None
    is_strict: bool

    @property
    def has_files(self) -> bool:
        """Whether something is written besides stdout."""
        return self.html is not None or self.markdown is not None

    def publish(self, report: Report, layers: Sequence[LayerHealth] = ()) -> int:
        """Writes the report everywhere it was asked for, files with the layers that route, and returns the exit code."""
        from pardbg.watchdog.outputs.as_json import render_json  # noqa: PLC0415 - renderers load only when there is a report
        from pardbg.watchdog.outputs.exit_code import exit_code  # noqa: PLC0415
        from pardbg.watchdog.outputs.html import render_html  # noqa: PLC0415
        from pardbg.watchdog.outputs.markdown import render_markdown  # noqa: PLC0415
        from pardbg.watchdog.outputs.terminal import render_terminal  # noqa: PLC0415

        text = render_json(report) if self.as_json else render_terminal(report, width=screen_width(), color=wants_color())
        click.echo(text, nl=not text.endswith("\n"), color=True)  # first: a full disk must not cost the verdict
        if self.html is not None:
            write_text(self.html, render_html(report, layers))
        if self.markdown is not None:
            write_text(self.markdown, render_markdown(report, layers))
        return exit_code(report, strict=self.is_strict)


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds ``--json``, ``--html``, ``--md`` and ``--strict``; the command receives them as ``destinations``."""

    def wrapper(as_json: bool, html: Path | None, markdown: Path | None, is_strict: bool, **rest: Any) -> Any:  # noqa: FBT001
        return command(destinations=Destinations(as_json, html, markdown, is_strict), **rest)

    file = click.Path(dir_okay=False, path_type=Path)
    for option in (
        click.option("--strict", "is_strict", is_flag=True, help="Count a slow phase as a fault (exit 3)."),
        click.option("--md", "markdown", type=file, metavar="FILE", help="Write the report as Markdown, too."),
        click.option("--html", type=file, metavar="FILE", help="Write the report as a page, too."),
        click.option("--json", "as_json", is_flag=True, help="Print the report as one JSON object (pardbg.report/1)."),
    ):
        wrapper = option(wrapper)
    return functools.update_wrapper(wrapper, command)


def write_text(path: Path, text: str) -> None:
    """Writes a file that was asked for.

    Raises:
        InputError: if it cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}", remedy="name a file in a folder you may write to") from error


def wants_color() -> bool:
    """Whether codes for colours go to a terminal that shows them."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def screen_width() -> int:
    """Characters a line: the terminal's, else 80."""
    return shutil.get_terminal_size((80, 24)).columns if sys.stdout.isatty() else 80
