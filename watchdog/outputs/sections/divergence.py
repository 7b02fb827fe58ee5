"""The first divergence: what each side issued where all should have issued the same."""

from pardbg.watchdog.model.names import Mismatch
from pardbg.watchdog.model.ranks import fold_briefly
from pardbg.watchdog.model.report import Finding, Report, Side
from pardbg.watchdog.outputs.blocks import Block, Depth, Paragraph, Section, Table, Text, Verbatim
from pardbg.watchdog.outputs.meanings import EDIT_MEANING
from pardbg.watchdog.outputs.phrases import spell_sizes

_MISMATCH_WORD = {
    Mismatch.OP: "operation",
    Mismatch.DTYPE: "dtype",
    Mismatch.SIZE: "size",
    Mismatch.SPLITS: "list of split sizes",
    Mismatch.ROOT: "root",
    Mismatch.CALL_SITE: "place in the code",
}


def first_divergence(report: Report, _depth: Depth) -> Section | None:
    """Show the sides, unless they were already shown as candidates."""
    verdict = report.verdict
    if verdict is None or verdict.first_divergence is None or verdict.candidates:
        return None
    return Section(title="First divergence", blocks=divergence_blocks(verdict))


def divergence_blocks(finding: Finding) -> tuple[Block, ...]:
    """Lay out a finding's first divergence; nothing where it has none."""
    divergence = finding.first_divergence
    if divergence is None:
        return ()
    words = f"The ranks part at seq {divergence.seq} of group {divergence.group}"
    difference = f"; what differs is the {_MISMATCH_WORD[finding.mismatch]}." if finding.mismatch else "."
    edit = f" Seen next to each other, the sequences say that {EDIT_MEANING[finding.edit]}." if finding.edit else ""
    table = Table(
        columns=("ranks", "count", "operation", "sizes", "where"),
        rows=tuple(_row(side) for side in divergence.sides),
    )
    return Paragraph(text=f"{words}{difference}{edit}"), table


def _row(side: Side) -> tuple[Text, ...]:
    where = Verbatim(text=side.where) if side.where else "not recorded"
    return fold_briefly(side.ranks), str(len(side.ranks)), side.op, spell_sizes(side.sizes), where
