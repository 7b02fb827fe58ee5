"""The database of incidents."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from pardbg.watchdog.incidents.letters import MOST_UPDATES, Event, Letter, all_letters, heads, new_key, remove
from pardbg.watchdog.incidents.opening import open_in_memory
from pardbg.watchdog.incidents.schema import MIGRATIONS
from pardbg.watchdog.incidents.store import FILE_NAME, IncidentStore
from pardbg.watchdog.incidents.trouble import (
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreNewerError,
    StoreReadOnlyError,
)
from tests.incidents.making import ended, incident


def letter(event: Event = Event.OPENED, number: int = 1) -> Letter:
    return Letter(key=new_key(), receiver="r", incident=incident(number).id, event=event, made_at_s=1.0, body="{}")


def test_what_is_saved_is_found_whole_even_what_utf8_cannot_carry(tmp_path: Path) -> None:
    store = IncidentStore(tmp_path)
    saved = [incident(number, of=name) for number, name in enumerate(["checkpoint_io", "device_stuck", "hostile"])]
    for one in saved:
        store.save(one)
    assert list(store.all()) == saved
    assert store.open_ones() == tuple(saved)
    assert store.get(saved[2].id) == saved[2]
    assert store.get("20261130-000099-4f2a") is None
    store.save(ended(saved[0]))
    assert store.open_ones() == tuple(saved[1:])
    assert store.ids("20261130-00000") == tuple(one.id for one in saved)
    store.close()
    assert (tmp_path / FILE_NAME).stat().st_mode & 0o777 == 0o600


def test_reader_sees_what_the_agent_writes_and_cannot_write(tmp_path: Path) -> None:
    store = IncidentStore(tmp_path)
    reader = IncidentStore.for_reading(tmp_path)
    store.save(incident(1))
    assert [one.id for one in reader.all()] == [incident(1).id]
    with pytest.raises(StoreReadOnlyError, match="readonly"):
        reader.save(incident(2))
    with store.database.transaction():  # while the agent is at it
        assert len(list(reader.all())) == 1
    reader.close()
    store.close()
    reader = IncidentStore.for_reading(tmp_path)  # no agent runs
    assert len(list(reader.all())) == 1
    reader.close()


def test_earlier_incidents_are_those_of_the_same_host_or_device(tmp_path: Path) -> None:
    store = IncidentStore(tmp_path)
    for number, name in ((1, "checkpoint_io"), (2, "device_stuck"), (3, "checkpoint_io"), (4, "healthy")):
        store.save(incident(number, of=name))
    verdict = incident(2, of="device_stuck").report.verdict
    assert verdict is not None
    assert verdict.culprits[0].device is not None
    gpu = str(verdict.culprits[0].device.uuid)

    def found(hosts: list[str], devices: list[str], before: int = 24, limit: int = 9) -> list[int]:
        ones = store.earlier(hosts, devices, f"2026-11-30T{before:02d}", limit)
        return [int(one.id[9:15]) for one in ones]

    assert found(["gpu-n05"], []) == [3, 1]
    assert found(["gpu-n05"], [], limit=1) == [3]
    assert found(["gpu-n05"], [], before=3) == [1]
    assert found([], [gpu]) == [2]
    assert found(["dgx-038", "gpu-n05"], [gpu]) == [3, 2, 1]
    assert found(["elsewhere", "GPU"], []) == []
    store.save(incident(1, of="healthy"))  # another scan sees it otherwise
    assert found(["gpu-n05"], []) == [3]
    store.close()


def test_pruning_takes_the_oldest_that_are_over_and_never_open_ones(tmp_path: Path) -> None:
    store = IncidentStore(tmp_path)
    store.save(incident(1))
    for number in (2, 3, 4, 5):
        store.save(ended(incident(number)))
    assert store.prune(closed_before="2026-11-30T03:00", most_bytes=1 << 30) == 1
    assert [int(one.id[9:15]) for one in store.all()] == [1, 3, 4, 5]
    two = 2 * len(json.dumps(store.database.rows("SELECT body FROM incidents WHERE id = ?", (incident(1).id,))[0][0]))
    assert store.prune(closed_before="", most_bytes=two) == 2
    assert [int(one.id[9:15]) for one in store.all()] == [1, 5]
    assert store.prune(closed_before="2027", most_bytes=0) == 1
    assert [int(one.id[9:15]) for one in store.all()] == [1]
    assert store.earlier(["gpu-n05"], [], "2027")[0].id == incident(1).id
    store.close()


def test_incident_and_letters_are_written_together_or_not_at_all(tmp_path: Path) -> None:
    store = IncidentStore(tmp_path)
    bad = replace(letter(), made_at_s=None)  # the table forbids it
    with pytest.raises(StoreError, match="made_at_s"):
        store.save(incident(1), [letter(), bad])
    assert list(store.all()) == []
    assert all_letters(store.database) == ()
    store.close()


def test_letters_of_an_incident_come_in_order_and_superseded_updates_go() -> None:
    database = open_in_memory(1 << 22)
    store = IncidentStore(Path(), database)
    first = letter()
    updates = [letter(Event.UPDATED) for _ in range(MOST_UPDATES + 3)]
    other = letter(number=2)
    store.save(incident(1), [first, *updates, letter(Event.ENDED), other])
    kept = [one.key for one in all_letters(database)]
    assert kept[0] == first.key
    assert kept[1 : MOST_UPDATES + 1] == [one.key for one in updates[3:]]
    assert [one.key for one in heads(database, "r")] == [first.key, other.key]
    assert [one.key for one in heads(database, "r", {first.key})] == [updates[3].key, other.key]
    remove(database, [first.key, other.key])
    assert [one.key for one in heads(database, "r")] == [updates[3].key]
    assert heads(database, "someone else") == ()
    store.close()


def test_database_of_a_later_version_is_left_as_it_is(tmp_path: Path) -> None:
    store = IncidentStore(tmp_path)
    store.database.rows(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    store.close()
    for open_it in (IncidentStore, IncidentStore.for_reading):
        with pytest.raises(StoreNewerError, match="version"):
            open_it(tmp_path)


def test_what_another_version_wrote_is_left_out_and_named(tmp_path: Path) -> None:
    store = IncidentStore(tmp_path)
    store.save(incident(1))
    store.save(incident(2))
    store.database.rows(
        "UPDATE incidents SET body = replace(body, 'missing-participant', 'new-kind') WHERE id = ?", (incident(1).id,)
    )
    assert [one.id for one in store.all()] == [incident(2).id]
    assert store.unreadable == {incident(1).id}
    store.close()


@pytest.mark.parametrize("garbage", [b"not a database, but long enough to be one" * 100, b"SQLite format 3\0" + b"\xff" * 9000])
def test_garbage_is_no_database(tmp_path: Path, garbage: bytes) -> None:
    (tmp_path / FILE_NAME).write_bytes(garbage)
    with pytest.raises(StoreCorruptError, match=FILE_NAME):
        IncidentStore(tmp_path)


def test_full_database_says_so_and_loses_nothing_it_had(tmp_path: Path) -> None:
    store = IncidentStore(tmp_path)
    store.save(incident(1))
    store.database.limit(128 << 10)
    with pytest.raises(StoreFullError, match="is full"):
        store.save_all(incident(number) for number in range(2, 60))
    assert store.ids() == (incident(1).id,)
    assert store.get(incident(1).id) == incident(1)
    store.database.limit(1 << 30)
    store.save(incident(99))
    store.close()


def test_only_the_incidents_import_sqlite() -> None:
    code = "import pardbg.watchdog.commands.main, sys; sys.exit('sqlite3' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
