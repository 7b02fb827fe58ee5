"""A report as JSON text: every key present, unknown values null, ASCII only, so that it is safe in any terminal and pipe."""

import json

import msgspec

from pardbg.watchdog.model.layout_report import LayoutReport
from pardbg.watchdog.model.report import Report


def render_json(report: Report) -> str:
    r"""Render one object and a newline, readable by people and by ``jq``.

    Characters outside ASCII are escaped (``\u202e``): file names may hold what a terminal obeys or what UTF-8 cannot carry.
    """
    return json.dumps(msgspec.to_builtins(report), indent=2, allow_nan=False) + "\n"


def render_layout_json(report: LayoutReport) -> str:
    """The same of a report on a layout, whose groups may hold hundreds of thousands of ranks: written by msgspec, for speed.

    Its text is pardbg's own, and ASCII.
    """
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode("ascii") + "\n"
