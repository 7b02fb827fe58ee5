"""What keeps incidents from being written or read.

PardbgError
+-- StoreError           the database of incidents cannot be used now
    +-- StoreFullError       no room on the disk, or in memory where that stands in for it
    +-- StoreReadOnlyError   it may not be written
    +-- StoreCorruptError    it is no database any more
    +-- StoreNewerError      a later version of pardbg has made it
"""

import sqlite3

from pardbg.watchdog.errors import PardbgError


class StoreError(PardbgError):
    """The database cannot be used now. What could not be written waits in memory."""

    remedy = "look at the disk and at the rights of the folder; it is tried again"


class StoreFullError(StoreError):
    """There is no room."""

    remedy = "make room; what could not be written is kept in memory until then"


class StoreReadOnlyError(StoreError):
    """It may be read but not written."""

    remedy = "make the folder writable, or give another with --state"


class StoreCorruptError(StoreError):
    """What the file holds is no database any more."""

    remedy = "it is moved aside, and a new one begun"


class StoreNewerError(StoreError):
    """A later pardbg has made it. It is left as it is."""

    remedy = "use that version, or give another folder with --state"


_WORDS = (
    ("disk is full", StoreFullError),
    ("readonly", StoreReadOnlyError),
    ("malformed", StoreCorruptError),
    ("not a database", StoreCorruptError),
)
"""Of SQLite's messages: Python 3.10 gives no codes."""


def store_error(error: sqlite3.Error, where: str) -> StoreError:
    """What an error of SQLite means, with the place."""
    words = str(error)
    kind = next((kind for part, kind in _WORDS if part in words), StoreError)
    return kind(f"{where}: {words}")
