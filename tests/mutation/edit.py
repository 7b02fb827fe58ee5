"""A rule of the diagnosis, the line that it stands in, what would break it, and the tests that hold it."""

from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]


class Edit(NamedTuple):
    """One change of the source, by its text: ``before`` occurs once in ``file``.

    Attributes:
        rule: what holds as long as the line is as it is.
        file: relative to the root of the repository.
        held_by: pytest's names of tests. Without the rule at least one of them fails.
    """

    rule: str
    file: str
    before: str
    after: str
    held_by: tuple[str, ...]

    def apply(self, text: str) -> str:
        """The source without the rule."""
        return text.replace(self.before, self.after)
