"""Begins a new database in place of a corrupt one, with all that can still be read of it."""

import contextlib
import time
from pathlib import Path

from pardbg.watchdog.incidents import letters as box
from pardbg.watchdog.incidents.opening import move_aside, open_for_reading
from pardbg.watchdog.incidents.store import FILE_NAME, IncidentStore
from pardbg.watchdog.incidents.trouble import StoreError


def begin_anew(folder: Path) -> tuple[Path, int]:
    """Renames the old one; it must not be open. Returns how it is called now and how many incidents are in the new one.

    Raises:
        StoreError: if it cannot be renamed, or no new one made.
    """
    aside = move_aside(folder / FILE_NAME, time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()))
    new = IncidentStore(folder)
    try:
        with contextlib.suppress(StoreError):
            _copy(aside, new)
        return aside, len(new.ids())
    finally:
        new.close()


def _copy(aside: Path, new: IncidentStore) -> None:
    """What was sent once too often does less harm than what was not sent: letters are copied, too."""
    old = IncidentStore(aside.parent, open_for_reading(aside))
    try:
        for incident_id in old.ids():
            with contextlib.suppress(StoreError):
                incident = old.get(incident_id)
                if incident is not None:
                    new.save(incident)
        new.save_all((), box.all_letters(old.database))
    finally:
        old.close()
