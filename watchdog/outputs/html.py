"""A report as one HTML file: no scripts, nothing loaded from elsewhere, the report's JSON at its end."""

from collections.abc import Sequence

from jinja2 import Environment, PackageLoader, StrictUndefined

from pardbg.watchdog.model.report import Report
from pardbg.watchdog.model.routing_health import LayerHealth
from pardbg.watchdog.model.text import printable_text
from pardbg.watchdog.outputs.as_json import render_json
from pardbg.watchdog.outputs.blocks import Block, Depth, Text, Verbatim
from pardbg.watchdog.outputs.page import build_page
from pardbg.watchdog.outputs.phrases import name_job
from pardbg.watchdog.outputs.sections.layers import layers_section


def render_html(report: Report, layers: Sequence[LayerHealth] = ()) -> str:
    """Render the complete report: every fact, place and finding is listed, and every layer that routes."""
    first = (layers_section(layers, len(layers)),) if layers else ()
    template = _environment().get_template("report.html.j2")
    return template.render(
        page=build_page(report, Depth.FULL, first),
        job=printable_text(name_job(report.job)),
        json=render_json(report),
    )


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("pardbg.watchdog.outputs", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["block_name"] = _block_name
    environment.tests["verbatim"] = _is_verbatim
    return environment


def _block_name(block: Block) -> str:
    return type(block).__name__


def _is_verbatim(text: Text) -> bool:
    return isinstance(text, Verbatim)
