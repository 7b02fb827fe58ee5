"""A report as short Markdown, to paste into an issue tracker or a chat: nothing in it can act as markup or ping anybody."""

import re
from collections.abc import Iterator, Sequence

from pardbg.watchdog.model.report import Report
from pardbg.watchdog.model.routing_health import LayerHealth
from pardbg.watchdog.outputs.blocks import Block, Depth, Facts, Item, Items, Paragraph, Step, Table, Text, Verbatim
from pardbg.watchdog.outputs.page import build_page
from pardbg.watchdog.outputs.sections.layers import layers_section

_MARKUP = re.compile(r"[\\`*|~\[\]$]|(?<![^\W_])_|_(?![^\W_])")
_LEADING_MARKUP = re.compile(r"^(\d*)([#+\-=.)])(?=[#\-=\s]|$)")
_MENTION = re.compile(r"(?<!\w)@(?=\w)")
_BACKTICKS = re.compile(r"`+")
_ZERO_WIDTH_SPACE = "\u200b"


def render_markdown(report: Report, layers: Sequence[LayerHealth] = (), most: int = Depth.BRIEF.item_limit) -> str:
    """Render the short form of a report, and ``most`` of the layers. Bold lines serve as titles: chats know no headings."""
    first = (layers_section(layers, most, all_of_them="`pardbg moe` shows all"),) if layers else ()
    page = build_page(report, Depth.BRIEF, first)
    parts = [f"**{page.status.value.upper()}**: {escape_prose(page.claim)}", _render_block(page.facts)]
    for section in page.sections:
        parts.append(f"**{escape_prose(section.title)}**")
        parts += [_render_block(block) for block in section.blocks]
    return "\n\n".join(parts) + "\n"


def escape_prose(text: str) -> str:
    """Escape what Markdown, HTML and mentions would make of a text."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = _MARKUP.sub(lambda match: f"\\{match[0]}", text)
    text = _LEADING_MARKUP.sub(r"\1\\\2", text)
    return _MENTION.sub(f"@{_ZERO_WIDTH_SPACE}", text)


def code_span(text: str) -> str:
    """Quote a text as code, behind more backticks than it holds in a row."""
    fence = _fence(text, shortest=1)
    padding = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{padding}{text}{padding}{fence}"


def _fence(text: str, *, shortest: int) -> str:
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    return "`" * max(shortest, longest + 1)


def _render_block(block: Block) -> str:
    if isinstance(block, Paragraph):
        return escape_prose(block.text)
    if isinstance(block, Facts):
        return "\n".join(f"- {escape_prose(fact.label)}: {_render_text(fact.value)}" for fact in block.facts)
    if isinstance(block, Table):
        return "\n".join(_table_lines(block))
    if isinstance(block, Items):
        return "\n".join(_render_item(item) for item in block.items)
    return "\n".join(_render_step(number, step) for number, step in enumerate(block.steps, start=1))


def _render_text(text: Text) -> str:
    return code_span(text.text) if isinstance(text, Verbatim) else escape_prose(text)


def _table_lines(table: Table) -> Iterator[str]:
    yield f"| {' | '.join(table.columns)} |"
    yield f"|{'---|' * len(table.columns)}"
    for row in table.rows:
        yield f"| {' | '.join(_render_cell(cell) for cell in row)} |"


def _render_cell(cell: Text) -> str:
    """Render a cell: inside a table a pipe ends the cell, even in code, unless it is escaped."""
    return code_span(cell.text).replace("|", "\\|") if isinstance(cell, Verbatim) else escape_prose(cell)


def _render_item(item: Item) -> str:
    origin = f": {code_span(item.origin.text)}" if item.origin else ""
    source = f" ({escape_prose(item.source)}{origin})" if item.source else ""
    return f"- {escape_prose(item.text)}{source}"


def _render_step(number: int, step: Step) -> str:
    lines = [f"{number}. {escape_prose(step.text)}"]
    if step.effect:
        lines[0] += f" (effect: {escape_prose(step.effect)})"
    if step.command is not None:
        fence = _fence(step.command.text, shortest=3)
        lines += [f"   {fence}sh", f"   {step.command.text}", f"   {fence}"]
    return "\n".join(lines)
