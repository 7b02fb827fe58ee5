"""Lines of a pinned width."""

from hypothesis import given
from hypothesis import strategies as st

from pardbg.watchdog.outputs.wrapping import hang, wrap

WORDS = st.lists(st.text(alphabet="abc/.-", min_size=1, max_size=30), max_size=30)


@given(WORDS, st.integers(5, 40))
def test_wrapping_breaks_between_words_only(words: list[str], width: int) -> None:
    lines = wrap(" ".join(words), width)
    assert " ".join(lines).split() == words
    assert all(len(line) <= width or " " not in line for line in lines)


def test_long_list_of_ranks_breaks_after_commas() -> None:
    assert wrap("ranks 0-3,5-11,13-19,21-27 wait", 14) == ["ranks 0-3,", "5-11,13-19,", "21-27 wait"]


def test_path_overflows_unbroken() -> None:
    assert wrap("see /a/very/long/path/to/a/file now", 10) == ["see", "/a/very/long/path/to/a/file", "now"]


def test_lines_hang_below_the_first_word() -> None:
    assert hang("why  ", "one two three", 12) == ["why  one two", "     three"]
