"""How much of the job was seen, and what was not, by reason."""

import re

from pardbg.watchdog.model.host_names import fold_hosts, fold_hosts_briefly
from pardbg.watchdog.model.names import CollectorName
from pardbg.watchdog.model.ranks import fold_ranks
from pardbg.watchdog.model.report import Coverage, Report, Unknown
from pardbg.watchdog.outputs.blocks import Block, Depth, Item, Items, Paragraph, Section, what_is_left
from pardbg.watchdog.outputs.phrases import count_of, name_ranks

ROUTING = CollectorName.ROUTING.value
"""The only source that may tell of the whole job, and of no rank."""
_MORE = "; --json has all"
_NUMBER = re.compile(r"\d+")


def unseen(report: Report, depth: Depth) -> Section:
    """Show the coverage and the unknowns: the same source for the same reason is one line, whatever the number of ranks.

    Reasons in words count as the same if they differ in numbers and names of hosts only.
    """
    alike: dict[tuple[object, object, str], list[Unknown]] = {}
    for unknown in report.unknowns:
        alike.setdefault((unknown.collector, unknown.reason, _likeness(unknown)), []).append(unknown)
    is_any = report.coverage.ranks_seen > 0 or ROUTING in report.coverage.by_collector
    groups = sorted(alike.values(), key=lambda group: -len(group))
    blocks: list[Block] = [Paragraph(text=_coverage(report.coverage))]
    if groups:
        blocks.append(Items(items=tuple(_item(group, depth) for group in groups[: depth.item_limit])))
        blocks.extend(what_is_left(len(groups), depth))
    else:
        blocks.append(Paragraph(text="Nothing that was asked for is missing." if is_any else "No rank was there to be asked."))
    is_whole = not groups and is_any
    return Section(title="What was seen" if is_whole else "What was not seen", blocks=tuple(blocks))


def _coverage(coverage: Coverage) -> str:
    if not coverage.ranks_seen and ROUTING in coverage.by_collector:
        return f"{', '.join(coverage.by_collector)} of the whole job; no rank is named."
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


def _likeness(unknown: Unknown) -> str:
    detail = unknown.detail.replace(unknown.host, "") if unknown.host else unknown.detail
    return _NUMBER.sub("", detail)


def _of_whom(group: list[Unknown]) -> str:
    """Name ranks, and the hosts only where each of them has one: a host that is known of some is not that of all."""
    placed = [(unknown.rank, unknown.host) for unknown in group if unknown.rank is not None]
    ranks = sorted({rank for rank, _ in placed})
    hosts = list(dict.fromkeys(unknown.host for unknown in group if unknown.host is not None))
    if not ranks:
        return f"on {_name_hosts(hosts)}" if hosts else "for the whole job"
    is_cut = name_ranks(ranks) != f"ranks {fold_ranks(ranks)}"
    count = f" ({count_of(len(ranks), 'rank')}{_MORE if is_cut else ''})" if len(ranks) > 1 else ""
    place = f" on {_name_hosts(hosts)}" if all(host is not None for _, host in placed) else ""
    return f"{name_ranks(ranks)}{count}{place}"


def _name_hosts(hosts: list[str]) -> str:
    brief = fold_hosts_briefly(hosts)
    return brief if brief == fold_hosts(hosts) else f"{brief} ({count_of(len(hosts), 'host')}{_MORE})"
