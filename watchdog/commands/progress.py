"""Progress on stderr: one line that is overwritten on a terminal, nothing elsewhere."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

CLEAR_LINE = "\r\x1b[K"
MAX_WIDTH = 78


@contextmanager
def show_progress(stream: TextIO | None) -> Iterator[Callable[[str], None]]:
    """Gives a function that shows what is being done now; the line is gone afterwards."""
    if stream is None or not stream.isatty():  # None: standard error is closed
        yield lambda _message: None
        return

    def show(message: str) -> None:
        stream.write(f"{CLEAR_LINE}{message[:MAX_WIDTH]}")
        stream.flush()

    try:
        yield show
    finally:
        stream.write(CLEAR_LINE)
        stream.flush()
