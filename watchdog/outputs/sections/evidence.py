"""What the verdict rests on: each fact once, with the ranks it was seen on and where it can be read again."""

from pardbg.watchdog.model.report import EvidenceLine, Report
from pardbg.watchdog.outputs.blocks import Depth, Item, Items, Section, Verbatim, what_is_left
from pardbg.watchdog.outputs.phrases import list_names, name_ranks

_HOSTS_SHOWN = 4


def evidence(report: Report, depth: Depth) -> Section | None:
    """List the verdict's evidence in its own order; lines that say the same of several ranks are one."""
    if report.verdict is None or not report.verdict.evidence:
        return None
    alike: dict[tuple[object, str], list[EvidenceLine]] = {}
    for line in report.verdict.evidence:
        alike.setdefault((line.source, line.text), []).append(line)
    shown = list(alike.values())[: depth.item_limit]
    usual = () if depth is Depth.FULL else report.sampled_at
    items = Items(items=tuple(_item(lines, usual) for lines in shown))
    return Section(title="Evidence", blocks=(items, *what_is_left(len(alike), depth)))


def _item(lines: list[EvidenceLine], usual: tuple[str, ...]) -> Item:
    """Word one fact; its time is only worth its room where it is not one of the ``usual`` ones, the report's samples."""
    first = lines[0]
    others = len({line.origin for line in lines}) - 1
    more = [f"first of {others + 1} origins"] if others else []
    return Item(
        text=first.text,
        source=", ".join([first.source.value, *_seen_on(lines, usual), *more]),
        origin=Verbatim(text=first.origin),
    )


def _seen_on(lines: list[EvidenceLine], usual: tuple[str, ...]) -> list[str]:
    ranks = sorted({line.rank for line in lines if line.rank is not None})
    hosts = list(dict.fromkeys(line.host for line in lines if line.host is not None))
    moments = sorted({line.at for line in lines if line.at is not None and line.at not in usual})
    parts = [
        name_ranks(ranks) if ranks else "",
        f"on {list_names(hosts, _HOSTS_SHOWN)}" if hosts else "",
    ]
    place = " ".join(part for part in parts if part)
    return [part for part in (place, moments[0] if moments else "") if part]
