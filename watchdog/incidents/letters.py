"""Letters: notifications that no receiver has taken yet, as rows of the same database.

They are written in the transaction of the incident they tell of and removed when they were taken: delivered at least once.
"""

import secrets
import sqlite3
from collections.abc import Collection, Sequence
from enum import Enum

from pardbg.watchdog.incidents.database import Database
from pardbg.watchdog.model.base import Noun

MOST_UPDATES = 8
"""Unsent letters of one incident for one receiver that only bring it up to date: older ones say nothing any more."""


class Event(str, Enum):
    """What a letter tells."""

    OPENED = "opened"
    UPDATED = "updated"
    RECOVERED = "recovered"
    ENDED = "ended"


class Letter(Noun, frozen=True, kw_only=True):
    """One notification for one receiver.

    Attributes:
        key: the same wherever the letter lies, and when it is sent again.
        receiver: `Receiver.name`.
        made_at_s: epoch seconds.
        refusals: how often the receiver has said that it will not have it.
        body: what is sent; empty where it was not read.
    """

    key: str
    receiver: str
    incident: str
    event: Event
    made_at_s: float
    refusals: int = 0
    body: str = ""


def new_key() -> str:
    """A key that no other letter has."""
    return secrets.token_hex(12)


def put(connection: sqlite3.Connection, letters: Sequence[Letter]) -> None:
    """Adds letters, inside a transaction; of updates only the newest are kept."""
    for letter in letters:
        connection.execute(
            "INSERT INTO letters (key, receiver, incident, event, made_at_s, refusals, body) VALUES (?,?,?,?,?,?,?)"
            " ON CONFLICT (key) DO NOTHING",
            (letter.key, letter.receiver, letter.incident, letter.event.value, letter.made_at_s, letter.refusals, letter.body),
        )
        connection.execute(
            "DELETE FROM letters WHERE number IN (SELECT number FROM letters WHERE receiver = ? AND incident = ? AND event = ?"
            " ORDER BY number DESC LIMIT -1 OFFSET ?)",
            (letter.receiver, letter.incident, Event.UPDATED.value, MOST_UPDATES),
        )


def heads(database: Database, receiver: str, without: Collection[str] = ()) -> tuple[Letter, ...]:
    """The first letter of each incident for a receiver, without its body, in order; as if some were not there."""
    found = database.rows(
        f"SELECT key, incident, event, made_at_s, refusals, min(number) FROM letters WHERE receiver = ?{_but(without)}"  # noqa: S608
        " GROUP BY incident ORDER BY min(number)",
        (receiver, *without),
    )
    return tuple(
        Letter(key=key, receiver=receiver, incident=incident, event=Event(event), made_at_s=made_at_s, refusals=refusals)
        for key, incident, event, made_at_s, refusals, _ in found
    )


def body_of(database: Database, key: str) -> tuple[str, ...]:
    """What a letter says; nothing if it is not there any more."""
    return tuple(str(row[0]) for row in database.rows("SELECT body FROM letters WHERE key = ?", (key,)))


def all_letters(database: Database) -> tuple[Letter, ...]:
    """All of them, whole, in order."""
    found = database.rows("SELECT key, receiver, incident, event, made_at_s, refusals, body FROM letters ORDER BY number")
    return tuple(
        Letter(key=key, receiver=receiver, incident=incident, event=Event(event), made_at_s=made, refusals=refusals, body=body)
        for key, receiver, incident, event, made, refusals, body in found
    )


def remove(database: Database, keys: Collection[str]) -> None:
    """These were taken, or given up."""
    with database.transaction() as connection:
        connection.executemany("DELETE FROM letters WHERE key = ?", [(key,) for key in keys])


def count_refusal(database: Database, key: str) -> None:
    """The receiver will not have this one."""
    with database.transaction() as connection:
        connection.execute("UPDATE letters SET refusals = refusals + 1 WHERE key = ?", (key,))


def count(database: Database, without: Collection[str] = ()) -> int:
    """How many wait."""
    return int(database.rows(f"SELECT count(*) FROM letters WHERE true{_but(without)}", tuple(without))[0][0])  # noqa: S608


def _but(keys: Collection[str]) -> str:
    return f" AND key NOT IN ({','.join('?' * len(keys))})" if keys else ""
