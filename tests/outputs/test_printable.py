"""Foreign text cannot act on a terminal, on a page's order, or on an encoder."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.outputs.samples import SAMPLES

from pardbg.watchdog.model.text import printable_text
from pardbg.watchdog.outputs.printable import printable


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rank 3: größer", "rank 3: größer"),
        ("\x1b[2Jgone", "\\x1b[2Jgone"),
        ("\x9b31m", "\\x9b31m"),
        ("over\rwritten", "over\\rwritten"),
        ("two\nlines\n", "two\\nlines"),
        ("a\tcolumn", "a column"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("file\udcff", "file\\udcff"),
        ("\U000e0001tag", "\\U000e0001tag"),
    ],
)
def test_what_would_act_is_shown(text: str, expected: str) -> None:
    assert printable_text(text) == expected


@given(st.text(alphabet=st.characters()))
def test_nothing_invisible_is_left(text: str) -> None:
    shown = printable_text(text)
    assert not {unicodedata.category(character) for character in shown} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    shown.encode()


def test_report_without_hostile_text_is_unchanged() -> None:
    assert printable(SAMPLES["checkpoint_io"]) == SAMPLES["checkpoint_io"]
