"""What an agent has kept, for people: read beside it, without disturbing it."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from pardbg.watchdog.errors import InputError
from pardbg.watchdog.incidents.folders import Folders
from pardbg.watchdog.incidents.lock import is_held
from pardbg.watchdog.incidents.store import FILE_NAME, IncidentStore
from pardbg.watchdog.incidents.trouble import StoreCorruptError
from pardbg.watchdog.model.incident import Incident
from pardbg.watchdog.model.text import printable_text

_NAMED = 5
_LEAST_FREE_BYTES = 1 << 20
_IF_CORRUPT = "start the agent: it moves it aside and begins a new one"
_REMEDY = "run it as the user as whom the agent runs (root, for a whole machine), or name a folder with --state"


class Reading:
    """The incidents in a state folder; `opened` makes one."""

    def __init__(self, folder: Path, store: IncidentStore) -> None:
        self._folder, self._store = folder, store

    def all(self) -> Iterator[Incident]:
        """All of them, the oldest first."""
        return self._store.all()

    @property
    def unreadable(self) -> set[str]:
        """Those that `all` has left out."""
        return self._store.unreadable

    def get(self, prefix: str) -> tuple[Incident, Path | None]:
        """The incident whose id begins so, and the folder with its evidence, if it is kept.

        Raises:
            InputError: if there is none, or more than one.
        """
        found = self._store.ids(prefix)
        if len(found) > 1:
            more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
            raise InputError(f"{prefix!r} may be {', '.join(found[:_NAMED])}{more}", remedy="write more of it")
        incident = self._store.get(found[0]) if found else None
        if incident is None:
            why = "was written by another version" if found else "is not kept"
            raise InputError(f"incident {printable_text(prefix)!r} {why} in {self._folder}", remedy="pardbg incidents list")
        return incident, Folders(self._folder).find(incident.id)

    def latest_of(self, incident: Incident) -> Path | None:
        """The folder with the evidence of its newest scan, if there was more than one."""
        return Folders(self._folder).find_latest(incident.id)


@contextlib.contextmanager
def opened(folder: Path) -> Iterator[Reading]:
    """Reads the incidents in a state folder.

    Raises:
        InputError: if no agent has kept any there, or they may not be read.
        StoreError: if they cannot be read.
    """
    try:
        (folder / FILE_NAME).stat()
    except FileNotFoundError as error:
        raise _none_kept(folder) from error
    except OSError as error:
        raise InputError(f"{folder} cannot be read: {error.strerror}", remedy=_REMEDY) from error
    try:
        with contextlib.closing(IncidentStore.for_reading(folder)) as store:
            if store.database.is_blank():
                raise _none_kept(folder)
            yield Reading(folder, store)
    except StoreCorruptError as error:
        raise StoreCorruptError(str(error), remedy=_IF_CORRUPT) from error


def _none_kept(folder: Path) -> InputError:
    if is_held(folder):
        return InputError(f"the agent has written nothing into {folder} yet", remedy="its log says why, if it cannot")
    return InputError(f"no agent has kept incidents in {folder}", remedy="name its state folder with --state")


def in_memory_only(folder: Path) -> str:
    """Words, if an agent runs on a disk so full that what it found last may be nowhere else than in its memory."""
    try:
        status = os.statvfs(folder)
    except OSError:
        return ""
    free = (status.f_bfree if os.geteuid() == 0 else status.f_bavail) * status.f_frsize
    is_doubtful = free < _LEAST_FREE_BYTES and is_held(folder)
    return "the agent of this machine may hold more in memory: its disk is full" if is_doubtful else ""
