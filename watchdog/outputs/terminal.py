"""A report as text for a terminal: pinned width, hanging indents, no colour unless asked for."""

from collections.abc import Iterator

from pardbg.watchdog.model.names import Status
from pardbg.watchdog.model.report import Report
from pardbg.watchdog.outputs.blocks import Block, Depth, Facts, Item, Items, Page, Paragraph, Step, Table, Text, Verbatim
from pardbg.watchdog.outputs.page import build_page
from pardbg.watchdog.outputs.wrapping import hang, wrap

_INDENT = "  "
_COLUMN_GAP = "   "
_NARROWEST_COLUMN = 16
"""Characters below which a wrapped table cell is harder to read than the row written as facts."""

_BOLD, _RESET = "\x1b[1m", "\x1b[0m"
_STATUS_COLOR = {
    Status.HEALTHY: "\x1b[1;32m",
    Status.HUNG: "\x1b[1;31m",
    Status.SLOW: "\x1b[1;33m",
    Status.FAILED: "\x1b[1;31m",
    Status.DEGRADED: "\x1b[1;33m",
    Status.UNDETERMINED: "\x1b[1;33m",
}


def render_terminal(report: Report, *, width: int = 80, color: bool = False) -> str:
    """Render a report. Paths and commands are never broken: they overflow ``width`` where they are longer."""
    return render_page(build_page(report, Depth.NORMAL), width=width, color=color)


def render_page(page: Page, *, width: int = 80, color: bool = False) -> str:
    """Render a page that is put into words."""
    lines = list(_page_lines(page, width))
    if color:
        lines = _colored(page, lines)
    return "\n".join(lines) + "\n"


def _page_lines(page: Page, width: int) -> Iterator[str]:
    yield from hang(f"{page.status.value.upper()}{_INDENT}", page.claim, width)
    yield ""
    yield from _indented(page.facts, width)
    for section in page.sections:
        yield from ("", section.title.upper())
        for index, block in enumerate(section.blocks):
            if index and isinstance(block, Facts | Table) and isinstance(section.blocks[index - 1], Facts | Table):
                yield ""
            yield from _indented(block, width)


def _indented(block: Block, width: int) -> Iterator[str]:
    for line in _block_lines(block, width - len(_INDENT)):
        yield f"{_INDENT}{line}" if line else ""


def _block_lines(block: Block, width: int) -> Iterator[str]:
    if isinstance(block, Paragraph):
        yield from wrap(block.text, width)
    elif isinstance(block, Facts):
        yield from _facts_lines(tuple((fact.label, fact.value) for fact in block.facts), width)
    elif isinstance(block, Table):
        yield from _table_lines(block, width)
    elif isinstance(block, Items):
        for item in block.items:
            yield from _item_lines(item, width)
    else:
        for number, step in enumerate(block.steps, start=1):
            yield from _step_lines(number, step, width)


def _facts_lines(facts: tuple[tuple[str, Text], ...], width: int) -> Iterator[str]:
    label_width = max(len(label) for label, _ in facts)
    for label, value in facts:
        yield from _labelled(f"{label:{label_width}}{_INDENT}", value, width)


def _labelled(label: str, value: Text, width: int) -> list[str]:
    if isinstance(value, str):
        return hang(label, value, width)
    if len(label) + len(value.text) <= width:
        return [f"{label}{value.text}"]
    return [label.rstrip(), f"{_INDENT}{value.text}"]


def _item_lines(item: Item, width: int) -> Iterator[str]:
    yield from hang("- ", item.text, width)
    if item.origin is None:
        yield from hang(_INDENT * 2, item.source, width)
    elif len(_INDENT * 2) + len(item.source) + len(item.origin.text) + 2 <= width:
        yield f"{_INDENT * 2}{item.source}: {item.origin.text}"
    else:
        yield from hang(_INDENT * 2, f"{item.source}:", width)
        yield f"{_INDENT * 3}{item.origin.text}"


def _step_lines(number: int, step: Step, width: int) -> Iterator[str]:
    mark = f"{number}. "
    yield from hang(mark, step.text, width)
    if step.command is not None:
        yield f"{' ' * len(mark)}{_INDENT}{step.command.text}"
    if step.effect:
        yield from hang(f"{' ' * len(mark)}effect: ", step.effect, width)


def _table_lines(table: Table, width: int) -> Iterator[str]:
    """Lay out a table: in columns where they fit, perhaps with one of them wrapped; else each row as facts."""
    widths = _column_widths(table, width)
    if widths is None:
        for index, row in enumerate(table.rows):
            yield from [""] if index else []
            yield from _facts_lines(tuple((label, cell) for label, cell in zip(table.columns, row, strict=True) if cell), width)
        return
    for row in (table.columns, *table.rows):
        cells = [
            [cell.text] if isinstance(cell, Verbatim) else wrap(cell, room) for cell, room in zip(row, widths, strict=True)
        ]
        for line in range(max(len(cell) for cell in cells)):
            parts = (f"{cell[line] if line < len(cell) else '':{room}}" for cell, room in zip(cells, widths, strict=True))
            yield _COLUMN_GAP.join(parts).rstrip()


def _column_widths(table: Table, width: int) -> list[int] | None:
    """Give each column the room it needs; the widest one yields what is missing, if it holds prose. None: no room."""
    natural = [max(len(_plain(cell)) for cell in column) for column in zip(table.columns, *table.rows, strict=True)]
    excess = sum(natural) + len(_COLUMN_GAP) * (len(natural) - 1) - width
    if excess <= 0:
        return natural
    widest = natural.index(max(natural))
    narrowed = natural[widest] - excess
    if narrowed < _NARROWEST_COLUMN or any(isinstance(row[widest], Verbatim) for row in table.rows):
        return None
    return [narrowed if index == widest else room for index, room in enumerate(natural)]


def _plain(text: Text) -> str:
    return text.text if isinstance(text, Verbatim) else text


def _colored(page: Page, lines: list[str]) -> list[str]:
    """Colour the status and embolden the titles, after layout, so that the codes take no room."""
    status = page.status.value.upper()
    titles = {section.title.upper() for section in page.sections}
    headline = f"{_STATUS_COLOR[page.status]}{status}{_RESET}{lines[0][len(status) :]}"
    return [headline, *(f"{_BOLD}{line}{_RESET}" if line in titles else line for line in lines[1:])]
