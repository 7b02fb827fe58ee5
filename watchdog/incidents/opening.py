"""Opens the database of incidents: to write it, to read it beside the agent, or one in memory; moves a corrupt one aside.

In the agent the file must never be opened by other means: to close it would drop SQLite's locks. While it is open, ``-wal`` and
``-shm`` lie beside it. Cost: opening to write checks the whole file, some 0.1 s for 100 MB.
"""

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from pardbg.watchdog.incidents.database import Database
from pardbg.watchdog.incidents.schema import MIGRATIONS
from pardbg.watchdog.incidents.trouble import StoreCorruptError, StoreError, StoreNewerError, StoreReadOnlyError, store_error

_BUSY_S = 5.0
_LONGEST_LOG_BYTES = 4 << 20
_AS_IT_IS = "immutable=1"
_OTHERS_WRITE = 0o022
_PARTS = ("", "-wal", "-shm")


def make_folder(folder: Path) -> None:
    """Makes the state folder, for this user alone, if it is not there.

    Raises:
        StoreError: if it cannot be made, or others may write there.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
    except OSError as error:
        raise StoreError(f"{folder} cannot be made: {error.strerror}") from error
    if status.st_uid not in {os.geteuid(), 0} or status.st_mode & _OTHERS_WRITE:
        raise StoreError(f"{folder} may be written by others", remedy="chmod go-w, or give another folder with --state")


def open_for_writing(path: Path) -> Database:
    """Opens the agent's database, and makes it, readable for this user alone, if it is not there.

    Raises:
        StoreCorruptError: if it is no database any more.
        StoreError: if it cannot be used for another reason.
    """
    try:
        if not path.exists():
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    except OSError as error:
        kind = StoreReadOnlyError if isinstance(error, PermissionError) else StoreError
        raise kind(f"{path} cannot be made: {error.strerror}") from error
    with _closed_if_of_no_use(_connect(str(path), str(path))) as database:
        for setting in ("auto_vacuum = INCREMENTAL", "journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
            database.rows(f"PRAGMA {setting}")
        database.rows(f"PRAGMA journal_size_limit = {_LONGEST_LOG_BYTES}")
        mistake = database.rows("PRAGMA quick_check(1)")[0][0]
        if mistake != "ok":
            raise StoreCorruptError(f"{path}: {' '.join(str(mistake).split())}")
        _migrate(database)
        return database


def open_for_reading(path: Path, *, is_disk_ill: bool = False) -> Database:
    """Opens it beside the agent that writes it, or when there is none.

    Args:
        path: of the database.
        is_disk_ill: nothing can be written; what was written last before a crash is not seen.

    Raises:
        StoreError: if it cannot be read, or is of a later version.
    """
    try:
        os.stat(path)  # noqa: PTH116 - tells why, where `exists` does not
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from error
    mode = _AS_IT_IS if is_disk_ill else _reading_mode(path)
    with _closed_if_of_no_use(_connect(f"{path.resolve().as_uri()}?{mode}", str(path))) as database:
        database.rows("PRAGMA query_only = ON")
        _version(database)
        return database


def _reading_mode(path: Path) -> str:
    """SQLite puts its own files beside it, and as the last to close it takes them away: both it can only where it may write."""
    if os.access(path, os.W_OK) and os.access(path.parent, os.W_OK):
        return "mode=rw"
    is_at_rest = not os.access(f"{path}-wal", os.F_OK)
    return _AS_IT_IS if is_at_rest else "mode=ro"


def open_in_memory(most_bytes: int) -> Database:
    """A database of the same form in memory, with a limit."""
    with _closed_if_of_no_use(_connect(":memory:", "memory")) as database:
        database.rows("PRAGMA foreign_keys = ON")
        _migrate(database)
        database.limit(most_bytes)
        return database


def move_aside(path: Path, moment: str) -> Path:
    """Renames a database that is none any more, with its log, and says what it is called now.

    Raises:
        StoreError: if it cannot be renamed.
    """
    aside = f"{path}.corrupt-{moment}"
    for part in _PARTS:
        try:
            Path(f"{path}{part}").rename(f"{aside}{part}")
        except FileNotFoundError:
            continue
        except OSError as error:
            raise StoreError(f"{path} is corrupt and cannot be moved aside: {error.strerror}") from error
    return Path(aside)


@contextlib.contextmanager
def _closed_if_of_no_use(database: Database) -> Iterator[Database]:
    try:
        yield database
    except BaseException:
        database.close()
        raise


def _connect(address: str, where: str) -> Database:
    try:
        connection = sqlite3.connect(
            address, timeout=_BUSY_S, isolation_level=None, check_same_thread=False, uri=address.startswith("file:")
        )
    except sqlite3.Error as error:
        raise store_error(error, where) from error
    return Database(connection, where)


def _version(database: Database) -> int:
    version = int(database.rows("PRAGMA user_version")[0][0])
    if version > len(MIGRATIONS):
        raise StoreNewerError(f"{database.where} is of version {version}, and this pardbg knows {len(MIGRATIONS)}")
    return version


def _migrate(database: Database) -> None:
    """Brings the tables to the present version, each step whole or not at all."""
    for version in range(_version(database), len(MIGRATIONS)):
        with database.transaction() as connection:
            for statement in MIGRATIONS[version].split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {version + 1}")
