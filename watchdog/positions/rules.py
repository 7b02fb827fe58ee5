"""The table of causes: from a stack frame to why a rank is on the host. The rules are data: `causes.json`."""

import re
from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files

import msgspec

from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.names import Cause
from pardbg.watchdog.model.recording import Frame


class CauseRule(Noun, frozen=True, kw_only=True):
    """One row: patterns on a frame, and what they mean. ``words`` completes "rank N is ...".

    ``encloses``: what the rule names calls back into training code (a data set's own ``__getitem__``), so it is looked for
    beyond the first frame of the training code as well.
    """

    cause: Cause
    words: str
    file: str | None = None
    function: str | None = None
    encloses: bool = False
    advice: str
    command: str | None = None

    def matches(self, frame: Frame) -> bool:
        """Whether every pattern of the rule is found in the frame."""
        return _found(self.file, frame.filename) and _found(self.function, frame.name)


class _Table(Noun, frozen=True, kw_only=True):
    rules: tuple[CauseRule, ...]


@lru_cache(maxsize=1)
def cause_rules() -> tuple[CauseRule, ...]:
    """The shipped rules, in the order they are tried."""
    text = (files(__package__) / "causes.json").read_bytes()
    return msgspec.json.decode(text, type=_Table).rules


def find_cause(frames: Sequence[Frame], depth: int) -> tuple[CauseRule, int] | None:
    """The first rule that matches a frame, and which frame.

    Args:
        frames: a stack, innermost first.
        depth: how many of its frames lie within libraries that the training code called last, plus one.
    """
    for rule in cause_rules():
        for index, frame in enumerate(frames if rule.encloses else frames[:depth]):
            if rule.matches(frame):
                return rule, index
    return None


def _found(pattern: str | None, text: str) -> bool:
    return pattern is None or re.search(pattern, text) is not None
