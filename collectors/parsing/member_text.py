"""The members of a group as a flight recorder writes them: ``[0, 1, 2]``."""

import re
from functools import lru_cache

from pardbg.watchdog.model.members import MAX_WORLD_SIZE, Run, fold_members

_RANK_NUMBER = re.compile(r"(?<![\w.-])\d{1,9}(?![\w.])", re.ASCII)


@lru_cache(maxsize=16)
def read_members(text: str) -> tuple[Run, ...]:
    """Reads the text; empty where it holds nothing that can be believed. All ranks of a node have the same, and it is long."""
    numbers = tuple(map(int, _RANK_NUMBER.findall(text)))
    if not numbers or len(numbers) > MAX_WORLD_SIZE or max(numbers) >= MAX_WORLD_SIZE:
        return ()
    return fold_members(numbers)
