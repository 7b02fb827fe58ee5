"""What an agent has kept, for people: read beside it, without disturbing it."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from pardbg.watchdog.errors import InputError
from pardbg.watchdog.incidents.folders import Folders
from pardbg.watchdog.incidents.store import FILE_NAME, IncidentStore
from pardbg.watchdog.model.incident import Incident
from pardbg.watchdog.model.text import printable_text

_NAMED = 5


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
        raise InputError(f"no agent has kept incidents in {folder}", remedy="name its state folder with --state") from error
    except OSError as error:
        raise InputError(f"{folder} cannot be read: {error.strerror}", remedy=_REMEDY) from error
    with contextlib.closing(IncidentStore.for_reading(folder)) as store:
        yield Reading(folder, store)
