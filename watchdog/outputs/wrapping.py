"""Lines of a pinned width: prose breaks at spaces, lists of ranks after commas, and nothing else breaks."""

import re
from collections.abc import Iterator

_RANK_LIST = re.compile(r"[\d,:-]+")


def wrap(text: str, width: int) -> list[str]:
    """Break prose into lines of at most ``width``; a word that is longer overflows on a line of its own."""
    lines = [""]
    for word in _words(text, width):
        line = f"{lines[-1]}{word}"
        if lines[-1] and len(line.rstrip()) > width:
            lines.append(word)
        else:
            lines[-1] = line
    return [line.rstrip() for line in lines]


def hang(first: str, text: str, width: int) -> list[str]:
    """Wrap prose behind a label; the lines that follow are indented to stand below the first word."""
    head, *rest = wrap(text, width - len(first))
    return [f"{first}{head}".rstrip(), *(f"{' ' * len(first)}{line}" for line in rest)]


def _words(text: str, width: int) -> Iterator[str]:
    """Split into words, each with the space behind it, and long lists of ranks into their runs."""
    for word in text.split():
        if len(word) > width and _RANK_LIST.fullmatch(word):
            *runs, last = word.split(",")
            yield from (f"{run}," for run in runs)
            yield f"{last} "
        else:
            yield f"{word} "
