"""What a page is made of: a headline and titled sections of blocks. Renderers lay them out and add no words."""

from enum import Enum

from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.names import Status


class Depth(Enum):
    """How much of a long list is worth its room. Nothing is dropped without saying how much was."""

    BRIEF = 4
    NORMAL = 10
    FULL = 1_000_000

    @property
    def item_limit(self) -> int:
        """Entries of one list that are shown."""
        return self.value


class Verbatim(Noun, frozen=True, kw_only=True):
    """A path, a frame, a command: never broken, so that it survives copy and paste."""

    text: str


Text = str | Verbatim
"""A plain ``str`` is prose, and may be wrapped."""


class Paragraph(Noun, frozen=True, kw_only=True):
    """Prose."""

    text: str


class Fact(Noun, frozen=True, kw_only=True):
    """One labelled value."""

    label: str
    value: Text


class Facts(Noun, frozen=True, kw_only=True):
    """Labelled values of one subject."""

    facts: tuple[Fact, ...]


class Table(Noun, frozen=True, kw_only=True):
    """Values of several subjects; every row has one cell a column."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Text, ...], ...]


class Item(Noun, frozen=True, kw_only=True):
    """A statement, who says so, and where it can be read again."""

    text: str
    source: str
    origin: Verbatim | None = None


class Items(Noun, frozen=True, kw_only=True):
    """Statements side by side."""

    items: tuple[Item, ...]


class Step(Noun, frozen=True, kw_only=True):
    """Something to do: in words, as a command line, and what it changes."""

    text: str
    command: Verbatim | None = None
    effect: str | None = None


class Steps(Noun, frozen=True, kw_only=True):
    """Things to do, in this order."""

    steps: tuple[Step, ...]


Block = Paragraph | Facts | Table | Items | Steps


def what_is_left(count: int, depth: Depth) -> tuple[Paragraph, ...]:
    """Say how many of ``count`` entries the depth leaves out, if any."""
    left = count - depth.item_limit
    return (Paragraph(text=f"... and {left} more; the JSON has all of them."),) if left > 0 else ()


class Section(Noun, frozen=True, kw_only=True):
    """A titled part of the page."""

    title: str
    blocks: tuple[Block, ...]


class Page(Noun, frozen=True, kw_only=True):
    """A whole report, in words. ``claim`` is the one sentence that must be read; ``facts`` stand right below it."""

    status: Status
    claim: str
    facts: Facts
    sections: tuple[Section, ...]
