"""Who waits where: the victims, by the operation they wait in."""

from collections.abc import Iterator

from pardbg.watchdog.model.ranks import fold_briefly
from pardbg.watchdog.model.report import Finding, Report
from pardbg.watchdog.outputs.blocks import Depth, Paragraph, Section, Table, Text, what_is_left
from pardbg.watchdog.outputs.phrases import count_of, explain_stride, name_collective, name_group, name_ranks

_LONGEST_RANKS = 40
"""Characters of folded ranks beyond which "all others" says more, where that is what they are."""


def waiting(report: Report, depth: Depth) -> Section | None:
    """Place each victim of the verdict once: in the verdict's own operation, else in that of a finding set aside for it."""
    if report.verdict is None or not report.verdict.victims:
        return None
    if not any(finding.collective for finding in (report.verdict, *report.set_aside)):
        count = count_of(len(report.verdict.victims), "rank")
        text = f"Only waiting: {name_ranks(report.verdict.victims)} ({count}). In which operation was not recorded."
        return Section(title="Who waits", blocks=(Paragraph(text=text),))
    rows = tuple(_rows(report.verdict, report))
    table = Table(columns=("ranks", "count", "wait in", "group"), rows=rows[: depth.item_limit])
    legend = next((words for row in table.rows if (words := explain_stride(str(row[0])))), None)
    notes = (Paragraph(text=legend),) if legend else ()
    return Section(title="Who waits where", blocks=(table, *what_is_left(len(rows), depth), *notes))


def _rows(verdict: Finding, report: Report) -> Iterator[tuple[Text, ...]]:
    unplaced = set(verdict.victims)
    for finding in (verdict, *report.set_aside):
        here = unplaced & _waiters(finding)
        unplaced -= here
        if here and finding.collective:
            group = name_group(finding.group) if finding.group else "not recorded"
            is_rest = not unplaced and _is_everyone_else(verdict, report)
            yield _write(here, is_rest=is_rest), str(len(here)), name_collective(finding.collective), group
    if unplaced:
        is_rest = _is_everyone_else(verdict, report)
        yield _write(unplaced, is_rest=is_rest), str(len(unplaced)), "not recorded", "not recorded"


def _waiters(finding: Finding) -> set[int]:
    """Return the victims that wait in the finding's own operation: those of its group or transfer, where these are known."""
    collective = finding.collective
    if collective is None:
        return set()
    if finding.group and finding.group.ranks:
        return set(finding.victims) & set(finding.group.ranks)
    ends = {rank for rank in (collective.src, collective.dst) if rank is not None}
    return set(finding.victims) & ends if ends else set(finding.victims)


def _is_everyone_else(verdict: Finding, report: Report) -> bool:
    """Tell whether victims and culprits are the whole world, so that the last row is all that the others leave."""
    blamed = {subject.rank for subject in verdict.culprits if subject.rank is not None}
    return {*verdict.victims, *blamed} == set(range(report.job.world_size or 0))


def _write(ranks: set[int], *, is_rest: bool) -> str:
    folded = fold_briefly(ranks)
    return "all others" if is_rest and len(folded) > _LONGEST_RANKS else folded
