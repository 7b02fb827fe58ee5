"""A report in words: the one place that decides what is said, and in which order."""

from collections.abc import Callable, Sequence

from pardbg.watchdog.model.report import Report
from pardbg.watchdog.outputs.blocks import Depth, Page, Section
from pardbg.watchdog.outputs.printable import printable
from pardbg.watchdog.outputs.sections import headline
from pardbg.watchdog.outputs.sections.about import about
from pardbg.watchdog.outputs.sections.blame import candidates, culprits, waited_for
from pardbg.watchdog.outputs.sections.divergence import first_divergence
from pardbg.watchdog.outputs.sections.evidence import evidence
from pardbg.watchdog.outputs.sections.others import others, set_aside
from pardbg.watchdog.outputs.sections.steps import next_steps
from pardbg.watchdog.outputs.sections.unseen import unseen
from pardbg.watchdog.outputs.sections.waiting import waiting

SECTIONS: tuple[Callable[[Report, Depth], Section | None], ...] = (
    culprits,
    candidates,
    waited_for,
    first_divergence,
    waiting,
    evidence,
    others,
    set_aside,
    unseen,
    next_steps,
    about,
)


def build_page(report: Report, depth: Depth, first: Sequence[Section] = ()) -> Page:
    """Put a report into words. Every text on the page is printable; renderers still escape for their own format.

    ``first`` are sections of what no report holds, and come before all others.
    """
    shown = printable(report)
    sections = (build(shown, depth) for build in SECTIONS)
    return Page(
        status=shown.status,
        claim=headline.claim(shown),
        facts=headline.facts(shown),
        sections=(*first, *(section for section in sections if section is not None)),
    )
