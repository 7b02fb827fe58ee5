"""What a page says, and in which order."""

import msgspec
import pytest
from tests.outputs.samples import SAMPLES

from pardbg.watchdog.model.names import Edit, Kind, Status
from pardbg.watchdog.model.report import Report
from pardbg.watchdog.outputs.blocks import Depth, Facts, Items, Page, Paragraph, Section, Table
from pardbg.watchdog.outputs.meanings import EDIT_MEANING, KIND_MEANING
from pardbg.watchdog.outputs.page import build_page


def section_of(page: Page, title: str) -> Section:
    return next(section for section in page.sections if section.title == title)


def test_every_kind_and_edit_has_a_meaning() -> None:
    assert set(KIND_MEANING) == set(Kind)
    assert set(EDIT_MEANING) == set(Edit)


def test_sections_come_in_the_order_of_need() -> None:
    page = build_page(SAMPLES["device_stuck"], Depth.NORMAL)
    assert [section.title for section in page.sections] == [
        "Culprit",
        "Who waits where",
        "Evidence",
        "Other findings",
        "Set aside",
        "What was not seen",
        "What to do next",
        "About this report",
    ]


def test_sides_that_are_the_candidates_are_told_once() -> None:
    page = build_page(SAMPLES["desync"], Depth.NORMAL)
    blocks = section_of(page, "Candidates").blocks
    assert [type(block) for block in blocks] == [Paragraph, Paragraph, Table]
    assert "First divergence" not in [section.title for section in page.sections]


def test_slow_phase_accuses_nobody() -> None:
    page = build_page(SAMPLES["slow_phase"], Depth.NORMAL)
    assert [section.title for section in page.sections][:2] == ["Waiting for", "Who waits where"]


def test_unknowns_of_one_reason_are_one_line() -> None:
    page = build_page(SAMPLES["undetermined"], Depth.NORMAL)
    items = section_of(page, "What was not seen").blocks[1]
    assert isinstance(items, Items)
    assert [item.text for item in items.items] == [
        "stacks: unreachable, ranks 4-59 (56 ranks) on node-b,node-c,node-d,node-e and 10 more (14 hosts; --json has all)",
        "stacks: denied, ranks 60-63 (4 ranks) on node-p",
        "flight-recorder: switched-off, ranks 0-3 (4 ranks)",
    ]


def test_full_depth_tells_every_detail_of_the_unknowns() -> None:
    page = build_page(SAMPLES["undetermined"], Depth.FULL)
    items = section_of(page, "What was not seen").blocks[1]
    assert isinstance(items, Items)
    assert [f"pid {9000 + rank}" in items.items[1].source for rank in range(60, 64)] == [True] * 4


def test_victims_are_placed_once() -> None:
    page = build_page(SAMPLES["checkpoint_io"], Depth.NORMAL)
    table = section_of(page, "Who waits where").blocks[0]
    assert isinstance(table, Table)
    assert [row[:3] for row in table.rows] == [
        ("32-36,38-39", "7", "all_to_all seq 4812"),
        ("0-31", "32", "all_reduce seq 1203"),
    ]


def test_ranks_alike_are_told_once() -> None:
    page = build_page(SAMPLES["straggler"], Depth.NORMAL)
    (facts,) = section_of(page, "Culprits").blocks
    assert isinstance(facts, Facts)
    assert facts.facts[0].value == "ranks 4-7 (4 ranks)"


def test_brief_page_says_how_much_it_leaves_out() -> None:
    report = SAMPLES["checkpoint_io"]
    many = msgspec.structs.replace(report, set_aside=tuple(report.set_aside[0] for _ in range(7)))
    blocks = section_of(build_page(many, Depth.BRIEF), "Set aside").blocks
    assert blocks[-1] == Paragraph(text="... and 3 more; the JSON has all of them.")


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        (SAMPLES["healthy"], "No fault was found in all 8 ranks."),
        (
            msgspec.structs.replace(SAMPLES["healthy"], status=Status.UNDETERMINED),
            "What was seen of all 8 ranks does not say whether anything is wrong.",
        ),
        (msgspec.structs.replace(SAMPLES["healthy"], status=Status.HUNG), "Something is wrong, and no finding explains it."),
    ],
)
def test_report_without_a_verdict_still_makes_a_claim(report: Report, expected: str) -> None:
    assert build_page(report, Depth.NORMAL).claim == expected


def test_healthy_claim_covers_only_what_was_seen() -> None:
    coverage = msgspec.structs.replace(SAMPLES["healthy"].coverage, ranks_seen=6)
    report = msgspec.structs.replace(SAMPLES["healthy"], coverage=coverage)
    assert build_page(report, Depth.NORMAL).claim == "No fault was found in 6 of 8 ranks."
