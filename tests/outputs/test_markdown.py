"""Nothing in the Markdown acts as markup or pings anybody."""

import pytest
from tests.outputs.samples import SAMPLES

from pardbg.watchdog.outputs.markdown import code_span, escape_prose, render_markdown


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("all_to_all of ep_4", "all_to_all of ep_4"),
        ("_save and dunder__", "\\_save and dunder\\_\\_"),
        ("a | b", "a \\| b"),
        ("`rm` *x* [y](z)", "\\`rm\\` \\*x\\* \\[y\\](z)"),
        ("<img src=x>", "&lt;img src=x&gt;"),
        ("&lt;", "&amp;lt;"),
        ("# title", "\\# title"),
        ("- point", "\\- point"),
        ("1. point", "1\\. point"),
        ("---", "\\---"),
        ("32-36,38", "32-36,38"),
        ("@channel", "@\u200bchannel"),
        ("mail@host", "mail@host"),
    ],
)
def test_prose_is_escaped(text: str, expected: str) -> None:
    assert escape_prose(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("ls -l", "`ls -l`"), ("echo `date` now", "``echo `date` now``"), ("`date`", "`` `date` ``"), ("a``b`c", "```a``b`c```")],
)
def test_code_span_outlives_its_backticks(text: str, expected: str) -> None:
    assert code_span(text) == expected


def test_hostile_table_cells_keep_their_columns() -> None:
    rows = [line for line in render_markdown(SAMPLES["hostile"]).splitlines() if line.startswith("|")]
    cells = [line.replace("\\|", "").count("|") - 1 for line in rows]
    assert cells == [5, 5, 5, 4, 4, 4]


def test_hostile_html_appears_as_code_only() -> None:
    for line in render_markdown(SAMPLES["hostile"]).splitlines():
        outside_code = "".join(line.split("``")[::2])
        assert "<" not in outside_code or line.strip().startswith("</script>")
