"""The page is well formed, loads nothing, and says what the terminal says."""

from html.parser import HTMLParser

import pytest
from tests.outputs.samples import SAMPLES

from pardbg.watchdog.model.report import Report
from pardbg.watchdog.outputs.as_json import render_json
from pardbg.watchdog.outputs.blocks import Depth
from pardbg.watchdog.outputs.html import render_html
from pardbg.watchdog.outputs.page import build_page

VOID_ELEMENTS = {"meta", "br"}
ACTIVE_ELEMENTS = {"script", "img", "iframe", "link", "base", "form", "object", "embed", "svg"}
LOADING_ATTRIBUTES = {"src", "href", "srcset", "action", "data", "style", "onerror", "onclick"}


class Reading(HTMLParser):
    """A page as a browser reads it: balance of the elements, their names and attributes, and the text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: set[str] = set()
        self.attributes: set[str] = set()
        self.texts: list[str] = []
        self.json = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the element."""
        self.elements.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in VOID_ELEMENTS:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Close the innermost element, which must be this one."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Keep the text."""
        self.texts.append(data)
        if self.open[-2:] == ["details", "pre"]:
            self.json += data

    @property
    def words(self) -> list[str]:
        """The text, without regard to white space."""
        return "".join(self.texts).split()


@pytest.mark.parametrize("report", SAMPLES.values(), ids=SAMPLES)
def test_page_is_well_formed_and_inert(report: Report) -> None:
    reading = Reading(render_html(report))
    assert reading.open == []
    assert not reading.elements & ACTIVE_ELEMENTS
    assert not reading.attributes & LOADING_ATTRIBUTES


@pytest.mark.parametrize("report", SAMPLES.values(), ids=SAMPLES)
def test_page_holds_the_whole_report_as_json(report: Report) -> None:
    assert Reading(render_html(report)).json == render_json(report)


@pytest.mark.parametrize("report", SAMPLES.values(), ids=SAMPLES)
def test_page_says_claim_and_titles_in_order(report: Report) -> None:
    page = build_page(report, Depth.FULL)
    text = " ".join(Reading(render_html(report)).words)
    places = [text.index(" ".join(page.claim.split()))]
    for section in page.sections:
        places.append(text.index(section.title, places[-1]))
    assert places == sorted(places)


def test_page_says_every_command_and_origin() -> None:
    report = SAMPLES["checkpoint_io"]
    assert report.verdict is not None
    text = "".join(Reading(render_html(report)).texts)
    assert all(action.command is not None and action.command in text for action in report.verdict.actions)
    assert "py-spy dump --json --pid 21877" in text


def test_page_is_encodable_whatever_file_names_hold() -> None:
    assert "\udcff" not in render_html(SAMPLES["hostile"])
