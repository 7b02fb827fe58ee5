"""Slurm's short form of many node names, as it occurs in its error lines: ``n[17,41-42],m3``. Pure, and bounded."""

import re
from collections.abc import Iterator

MOST_NAMES = 65536

_NAME = re.compile(r"([^\[\],]+)(?:\[([\d,-]+)\])?,?")
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")


def unfold(text: str) -> list[str]:
    """The names; of a form that is not known the text itself."""
    names: list[str] = []
    at = 0
    while at < len(text):
        found = _NAME.match(text, at)
        if found is None or len(names) > MOST_NAMES:
            return [text]
        stem, numbers = found.groups()
        names += [stem] if numbers is None else [f"{stem}{number}" for number in _numbers(numbers)]
        at = found.end()
    return names


def _numbers(text: str) -> Iterator[str]:
    for item in text.split(","):
        if found := _RANGE.fullmatch(item):
            first, last = found.group(1), found.group(2) or found.group(1)
            for number in range(int(first), min(int(last), int(first) + MOST_NAMES) + 1):
                yield f"{number:0{len(first)}d}"
