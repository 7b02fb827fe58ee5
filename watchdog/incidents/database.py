"""One SQLite file and one connection to it: transactions, and errors in our words.

Cost: a write is one `fsync` (WAL, ``synchronous=FULL``): milliseconds, or as long as the disk hangs. Threads may share it: one
statement or transaction at a time. The agent is the only writer; readers in other processes do not wait for it.
"""

import contextlib
import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from pardbg.watchdog.incidents.trouble import store_error

_PAGE_BYTES = 4096


class Database:
    """A connection. `opening.py` makes it."""

    def __init__(self, connection: sqlite3.Connection, where: str) -> None:
        self._connection, self.where = connection, where
        self._lock = threading.RLock()
        self._identity = _identity(where)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All that is done inside is written, or nothing of it.

        Raises:
            StoreError: if it is nothing.
        """
        with self._lock, self._in_our_words():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):  # SQLite may have done it already
                    self._connection.execute("ROLLBACK")
                raise

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """What a query finds.

        Raises:
            StoreError: if it cannot be asked.
        """
        with self._lock, self._in_our_words():
            return self._connection.execute(statement, values).fetchall()

    def is_blank(self) -> bool:
        """Whether it has no tables yet: there was no room for them.

        Raises:
            StoreError: if it cannot be asked.
        """
        return not self.rows("PRAGMA user_version")[0][0]

    def limit(self, most_bytes: int) -> None:
        """Sets how large it may become."""
        self.rows(f"PRAGMA max_page_count = {most_bytes // _PAGE_BYTES}")

    def is_in_place(self) -> bool:
        """Whether the file still is where it was opened: what is written to one that was removed is lost."""
        return _identity(self.where) == self._identity

    def close(self) -> None:
        """Closes it; its log becomes part of the file."""
        with self._lock, contextlib.suppress(sqlite3.Error):
            self._connection.close()

    @contextlib.contextmanager
    def _in_our_words(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise store_error(error, self.where) from error


def _identity(where: str) -> tuple[int, int] | None:
    try:
        status = os.stat(where)  # noqa: PTH116 - not opened: closing it would drop SQLite's locks
    except OSError:
        return None
    return status.st_dev, status.st_ino
