"""Incidents in a database: saved with their letters in one transaction, found again, and forgotten when they are old.

Cost: see `database.py`. What was saved when `save` returns survives SIGKILL and a loss of power.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.incidents import letters as box
from pardbg.watchdog.incidents.database import Database
from pardbg.watchdog.incidents.letters import Letter
from pardbg.watchdog.incidents.opening import open_for_reading, open_for_writing
from pardbg.watchdog.incidents.rows import culprit_names, decode, device_name, encode, host_name
from pardbg.watchdog.model.incident import Incident, IncidentState

FILE_NAME = "incidents.sqlite"
_OPEN = IncidentState.OPEN.value


class IncidentStore:
    """The incidents of one state folder.

    Args:
        folder: where ``incidents.sqlite`` is, or is made.
        database: another one instead.

    Raises:
        StoreError: as every method, if the database cannot be used.
    """

    def __init__(self, folder: Path, database: Database | None = None) -> None:
        self.database = database or open_for_writing(folder / FILE_NAME)
        self.unreadable: set[str] = set()

    @classmethod
    def for_reading(cls, folder: Path) -> "IncidentStore":
        """The incidents of an agent, also while it writes them."""
        return cls(folder, open_for_reading(folder / FILE_NAME))

    def save(self, incident: Incident, letters: Sequence[Letter] = ()) -> None:
        """Writes an incident, new or known, and the letters that tell of it: all or nothing."""
        self.save_all([incident], letters)

    def save_all(self, incidents: Iterable[Incident], letters: Sequence[Letter] = ()) -> None:
        """Writes several in one transaction."""
        with self.database.transaction() as connection:
            for incident in incidents:
                _write(connection, incident)
            box.put(connection, letters)

    def open_ones(self) -> tuple[Incident, ...]:
        """Those that last, the oldest first."""
        return tuple(self._read("SELECT id FROM incidents WHERE state = ? ORDER BY id", (_OPEN,)))

    def all(self) -> Iterator[Incident]:
        """All of them, the oldest first, one after the other; what cannot be read is added to ``unreadable``."""
        return self._read("SELECT id FROM incidents ORDER BY id")

    def closed_since(self, moment: str) -> tuple[Incident, ...]:
        """Those that ended after a moment (RFC 3339)."""
        return tuple(self._read("SELECT id FROM incidents WHERE state != ? AND updated_at > ? ORDER BY id", (_OPEN, moment)))

    def get(self, incident_id: str) -> Incident | None:
        """One of them, None if it is not there or cannot be read."""
        return next(self._read("SELECT id FROM incidents WHERE id = ?", (incident_id,)), None)

    def ids(self, prefix: str = "") -> tuple[str, ...]:
        """The ids that begin so, in order."""
        found = self.database.rows("SELECT id FROM incidents WHERE substr(id, 1, ?) = ? ORDER BY id", (len(prefix), prefix))
        return tuple(str(row[0]) for row in found)

    def earlier(self, hosts: Iterable[str], device_uuids: Iterable[str], before: str, limit: int = 50) -> tuple[Incident, ...]:
        """Incidents opened before a moment (RFC 3339) in which one of these hosts or GPUs held a culprit, the newest first."""
        names = [*map(host_name, hosts), *map(device_name, device_uuids)]
        if not names:
            return ()
        marks = ",".join("?" * len(names))
        statement = (
            f"SELECT DISTINCT id FROM incidents JOIN culprits ON incident = id WHERE name IN ({marks})"  # noqa: S608 - only marks
            " AND opened_at < ? ORDER BY id DESC LIMIT ?"
        )
        return tuple(self._read(statement, (*names, before, limit)))

    def prune(self, *, closed_before: str, most_bytes: int) -> int:
        """Forgets incidents that were over before a moment (RFC 3339), then the oldest ones that are over until all reports
        together take no more than ``most_bytes``. Open ones stay. Returns how many are gone.
        """  # noqa: D205 - one thought
        closed = self.database.rows(
            "SELECT id, updated_at, length(body) FROM incidents WHERE state != ? ORDER BY updated_at", (_OPEN,)
        )
        total = self.database.rows("SELECT coalesce(sum(length(body)), 0) FROM incidents")[0][0]
        gone: list[str] = []
        for incident_id, updated_at, length in closed:
            if updated_at >= closed_before and total <= most_bytes:
                break
            gone.append(incident_id)
            total -= length
        if gone:
            with self.database.transaction() as connection:
                connection.executemany("DELETE FROM incidents WHERE id = ?", [(incident_id,) for incident_id in gone])
            self.database.rows("PRAGMA incremental_vacuum")
        return len(gone)

    def clear(self) -> None:
        """Forgets everything."""
        with self.database.transaction() as connection:
            connection.execute("DELETE FROM letters")
            connection.execute("DELETE FROM incidents")

    def close(self) -> None:
        """Closes the database."""
        self.database.close()

    def _read(self, statement: str, values: Sequence[object] = ()) -> Iterator[Incident]:
        """The incidents whose ids a query finds: one at a time, for reports may be large."""
        for (incident_id,) in self.database.rows(statement, values):
            for (body,) in self.database.rows("SELECT body FROM incidents WHERE id = ?", (incident_id,)):
                try:
                    yield decode(body)
                except ParseError:
                    self.unreadable.add(incident_id)


def _write(connection: sqlite3.Connection, incident: Incident) -> None:
    connection.execute(
        "INSERT INTO incidents (id, state, opened_at, updated_at, body) VALUES (?,?,?,?,?) ON CONFLICT (id) DO UPDATE SET"
        " state = excluded.state, opened_at = excluded.opened_at, updated_at = excluded.updated_at, body = excluded.body",
        (incident.id, incident.state.value, incident.opened_at, incident.updated_at, encode(incident)),
    )
    connection.execute("DELETE FROM culprits WHERE incident = ?", (incident.id,))
    names = culprit_names(incident.report)
    connection.executemany("INSERT INTO culprits (name, incident) VALUES (?,?)", [(name, incident.id) for name in names])
