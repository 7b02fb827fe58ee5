"""Horovod's stall inspector: the coordinator says of tensors that wait which ranks have not submitted them.

Shapes: ``tensor [missing ranks: 1, 2]`` up to 0.18, and ``Missing ranks:`` with a line ``1: [tensors]`` a rank since. The ranks
are global ones.
"""

import re
from collections.abc import Iterator
from itertools import islice

from pardbg.collectors.parsing.log_lines import line_at
from pardbg.watchdog.model.log_event import StallNamed

MOST_RANKS, MOST_STATEMENTS = 65_536, 1000
_INLINE = re.compile(r"\[missing ranks: ?(?P<ranks>\d[\d, ]{0,4000})\]")
_HEADER = re.compile(r"Missing ranks: *\r?\n")
_NUMBER = re.compile(r"\d{1,7}")
_OF_RANK = re.compile(r"(?:[^\n:]{0,60}[>:] ?)?(?P<rank>\d{1,7}): \[[^\n]{0,10000}(?:\n|$)")


def parse_stalls(text: str) -> Iterator[tuple[int, StallNamed]]:
    """Each statement with where it ends in the text. Linear; costs two searches where there is none."""
    if "[missing ranks:" in text:
        for match in islice(_INLINE.finditer(text), MOST_STATEMENTS):
            yield match.end(), _named(_NUMBER.findall(match["ranks"]), text, match.start())
    if "Missing ranks:" in text:
        for match in islice(_HEADER.finditer(text), MOST_STATEMENTS):
            end, ranks = match.end(), list[str]()
            while (line := _OF_RANK.match(text, end)) is not None:
                ranks.append(line["rank"])
                end = line.end()
            if ranks:
                yield end, _named(ranks, text, match.end())


def _named(ranks: list[str], text: str, at: int) -> StallNamed:
    absent = sorted({number for number in map(int, ranks) if number < MOST_RANKS})
    read = line_at(text, at)
    told = read.text
    told = told if "issing ranks" in told else f"missing ranks: {told}"
    return StallNamed(absent=tuple(absent), at_ns=read.at_ns, text=told)
