"""The findings that are not the verdict: those that stand beside it, and those judged its consequences."""

from pardbg.watchdog.model.report import Finding, Report
from pardbg.watchdog.outputs.blocks import Block, Depth, Item, Items, Paragraph, Section, what_is_left
from pardbg.watchdog.outputs.phrases import name_subjects

_CULPRITS_SHOWN = 4


def others(report: Report, depth: Depth) -> Section | None:
    """Show what else was found, independently of the verdict."""
    rest = [finding for finding in report.findings if finding != report.verdict]
    return _section("Other findings", (), [_item(finding, _blamed(finding)) for finding in rest], depth)


def set_aside(report: Report, depth: Depth) -> Section | None:
    """Show the consequences: they explain what people saw first. Whom they name is not to blame, so nobody is named."""
    intro = (Paragraph(text="Consequences of another finding; they need no repair of their own."),)
    return _section("Set aside", intro, [_item(finding, "") for finding in report.set_aside], depth)


def _section(title: str, intro: tuple[Block, ...], items: list[Item], depth: Depth) -> Section | None:
    if not items:
        return None
    shown = Items(items=tuple(items[: depth.item_limit]))
    return Section(title=title, blocks=(*intro, shown, *what_is_left(len(items), depth)))


def _item(finding: Finding, blamed: str) -> Item:
    name = finding.kind.value if finding.cause is None else f"{finding.kind.value} / {finding.cause.value}"
    return Item(text=finding.claim, source=f"{name}, {finding.confidence.value}{blamed}")


def _blamed(finding: Finding) -> str:
    noun = "culprit" if len(finding.culprits) == 1 else "culprits"
    return f"; {noun}: {name_subjects(finding.culprits, _CULPRITS_SHOWN)}" if finding.culprits else ""
