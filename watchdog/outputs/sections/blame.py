"""Who is to blame: culprits; or candidates that cannot be told apart; or whom the others wait for without blame."""

from pardbg.watchdog.model.names import ROUTING_KINDS
from pardbg.watchdog.model.report import Finding, Report
from pardbg.watchdog.outputs.blocks import Block, Depth, Paragraph, Section
from pardbg.watchdog.outputs.sections.divergence import divergence_blocks
from pardbg.watchdog.outputs.sections.subjects import subject_blocks


def culprits(report: Report, depth: Depth) -> Section | None:
    """Name the culprits, or say that there is none. A report without a verdict accuses nobody."""
    verdict = report.verdict
    if verdict is None:
        return None
    if not verdict.culprits:
        is_told_elsewhere = bool(verdict.candidates or verdict.waiting_for) or verdict.kind in ROUTING_KINDS
        return None if is_told_elsewhere else Section(title="Culprit", blocks=(Paragraph(text="None is established."),))
    title = "Culprit" if len(verdict.culprits) == 1 else "Culprits"
    blocks = subject_blocks(verdict, verdict.culprits, depth)
    return Section(title=title, blocks=blocks)


def candidates(report: Report, depth: Depth) -> Section | None:
    """Show the candidates: as the sides of the divergence where they are just these, else one by one."""
    verdict = report.verdict
    if verdict is None or not verdict.candidates:
        return None
    sure = "No culprit is established" if not verdict.culprits else "There may be others to blame"
    is_one = len(verdict.candidates) == 1 and not verdict.culprits
    doubt = "it may be this one, and what was seen does not settle it" if is_one else "what was seen cannot tell these apart"
    intro = Paragraph(text=f"{sure}: {doubt}.")
    blocks: tuple[Block, ...] = divergence_blocks(verdict)
    if not _are_the_sides(verdict) or depth is Depth.FULL:
        blocks += subject_blocks(verdict, verdict.candidates, depth)
    return Section(title="Candidates", blocks=(intro, *blocks))


def waited_for(report: Report, depth: Depth) -> Section | None:
    """Show whom the others wait for while it is busy and moves."""
    verdict = report.verdict
    if verdict is None or not verdict.waiting_for:
        return None
    intro = Paragraph(text="The others wait for this, which is busy and moves. Nobody is to blame so far.")
    return Section(title="Waiting for", blocks=(intro, *subject_blocks(verdict, verdict.waiting_for, depth)))


def _are_the_sides(finding: Finding) -> bool:
    """Tell whether the candidates are the ranks of the sides and nothing else (a host or link among them adds a null)."""
    if finding.first_divergence is None:
        return False
    named = {rank for subject in finding.candidates for rank in subject.ranks or (subject.rank,)}
    return named == {rank for side in finding.first_divergence.sides for rank in side.ranks}
