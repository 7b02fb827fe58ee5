"""How much of the job was seen, and what was not, by reason."""

from pardbg.watchdog.model.report import Coverage, Report, Unknown
from pardbg.watchdog.outputs.blocks import Block, Depth, Item, Items, Paragraph, Section
from pardbg.watchdog.outputs.phrases import count_of, list_names, name_ranks

_HOSTS_SHOWN = 4


def unseen(report: Report, depth: Depth) -> Section:
    """Show the coverage and the unknowns: the same source for the same reason is one line, whatever the number of ranks."""
    alike: dict[tuple[object, object], list[Unknown]] = {}
    for unknown in report.unknowns:
        alike.setdefault((unknown.collector, unknown.reason), []).append(unknown)
    groups = sorted(alike.values(), key=lambda group: -len(group))
    blocks: list[Block] = [Paragraph(text=_coverage(report.coverage))]
    if groups:
        blocks.append(Items(items=tuple(_item(group, depth) for group in groups)))
    else:
        blocks.append(Paragraph(text="Nothing that was asked for is missing."))
    return Section(title="What was not seen" if groups else "What was seen", blocks=tuple(blocks))


def _coverage(coverage: Coverage) -> str:
    expected = "an unknown number of" if coverage.ranks_expected is None else str(coverage.ranks_expected)
    noun = "rank was" if coverage.ranks_expected == 1 else "ranks were"
    counts = ", ".join(f"{name} {count}" for name, count in coverage.by_collector.items())
    return f"{coverage.ranks_seen} of {expected} {noun} seen{f'; ranks by source: {counts}' if counts else ''}."


def _item(group: list[Unknown], depth: Depth) -> Item:
    first = group[0]
    details = list(dict.fromkeys(unknown.detail for unknown in group if unknown.detail))
    shown = details[: 1 if depth is not Depth.FULL else depth.item_limit]
    more = f" (and {len(details) - len(shown)} other details)" if len(details) > len(shown) else ""
    text = f"{first.collector.value}: {first.reason.value}, {_of_whom(group)}"
    return Item(text=text, source=f"{'; '.join(shown)}{more}")


def _of_whom(group: list[Unknown]) -> str:
    ranks = sorted({unknown.rank for unknown in group if unknown.rank is not None})
    hosts = list(dict.fromkeys(unknown.host for unknown in group if unknown.host is not None))
    if not ranks:
        return f"on {list_names(hosts, _HOSTS_SHOWN)}" if hosts else "for the whole job"
    count = f" ({count_of(len(ranks), 'rank')})" if len(ranks) > 1 else ""
    place = f" on {hosts[0]}" if len(hosts) == 1 else ""
    return f"{name_ranks(ranks)}{count}{place}"
