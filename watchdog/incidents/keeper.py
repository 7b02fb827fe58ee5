"""Writes to the disk, and to memory while the disk does not take it: for others there is one store, and nothing is lost.

What waits in memory (`_pending`, a database of the same form, `MOST_PENDING_BYTES` at most) is written before anything else
when the disk takes it again. A corrupt one is moved aside and a new one begun, with what can still be read of the old one.
Threads may share it; a disk that hangs makes them all wait.
"""

import contextlib
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from pardbg.watchdog.incidents import letters as box
from pardbg.watchdog.incidents.letters import Letter
from pardbg.watchdog.incidents.lock import LOCK_NAME
from pardbg.watchdog.incidents.opening import make_folder, open_for_reading, open_in_memory
from pardbg.watchdog.incidents.salvage import begin_anew
from pardbg.watchdog.incidents.store import FILE_NAME, IncidentStore
from pardbg.watchdog.incidents.trouble import StoreCorruptError, StoreError
from pardbg.watchdog.model.incident import Incident, IncidentState

MOST_PENDING_BYTES = 16 << 20
_log = logging.getLogger("pardbg.incidents")
_T = TypeVar("_T")


class Keeper:
    """The incidents and letters of one agent.

    Attributes:
        problem: why the disk does not take what is written, empty if it does.
        notice: what has happened to an earlier database, empty if nothing; it stays until the agent ends.
        ids: of the incidents that were there at the beginning.
        unsent: how many letters wait.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._path = folder, folder / FILE_NAME
        self._lock = threading.RLock()
        self._disk: IncidentStore | None = None
        self._pending = IncidentStore(folder, open_in_memory(MOST_PENDING_BYTES))
        self._open: dict[str, Incident] = {}
        self._removed: set[str] = set()
        self.problem = self.notice = ""
        self.unsent = 0
        for _ in range(2):  # the second time it is a new one, if the first was corrupt
            self._open = {incident.id: incident for incident in self._from_disk(IncidentStore.open_ones, ())}
        if self._disk is None:
            self._open = self._glimpse()
        self.ids = frozenset(self._from_disk(IncidentStore.ids, ()))
        self._count()

    def save(self, incident: Incident, letters: Sequence[Letter] = ()) -> None:
        """Writes an incident and the letters that tell of it, now or when the disk takes it.

        Raises:
            StoreFullError: if even memory does not take it: then it is lost.
        """
        with self._lock:
            if incident.state is IncidentState.OPEN:
                self._open[incident.id] = incident
            else:
                self._open.pop(incident.id, None)
            try:
                self._settle().save(incident, letters)
                self.problem = ""
            except StoreError as error:
                self._suffer(error)
                self._pending.save(incident, letters)
            self._count()

    def settle(self) -> None:
        """Writes what waits in memory, if the disk takes it now."""
        with self._lock:
            with self._suffering():
                self._settle()
            self._count()

    def open_ones(self) -> tuple[Incident, ...]:
        """Those that last, the oldest first."""
        with self._lock:
            return tuple(self._open[key] for key in sorted(self._open))

    def closed_since(self, moment: str) -> tuple[Incident, ...]:
        """Those that ended after a moment (RFC 3339), the oldest first."""
        with self._lock:
            return _newest(self._asked(lambda store: store.closed_since(moment)))

    def earlier(self, hosts: Iterable[str], devices: Iterable[str], before: str) -> tuple[Incident, ...]:
        """See `IncidentStore.earlier`."""
        hosts, devices = tuple(hosts), tuple(devices)
        with self._lock:
            return _newest(self._asked(lambda store: store.earlier(hosts, devices, before)))[::-1]

    def heads(self, receiver: str) -> tuple[Letter, ...]:
        """The first letter of each incident for a receiver, without its body, in order."""
        with self._lock:
            first: dict[str, Letter] = {}
            for letter in self._asked(lambda store: box.heads(store.database, receiver, self._removed)):
                first.setdefault(letter.incident, letter)
            return tuple(first.values())

    def body_of(self, key: str) -> str | None:
        """What a letter says; None if it is not there any more."""
        with self._lock:
            return next(iter(self._asked(lambda store: box.body_of(store.database, key))), None)

    def remove(self, key: str) -> None:
        """A letter was taken, or is given up."""
        with self._lock:
            box.remove(self._pending.database, (key,))
            self._removed.add(key)
            with self._suffering():
                self._remove()
            self._count()

    def count_refusal(self, key: str) -> None:
        """A receiver will not have a letter."""
        with self._lock, self._suffering():
            box.count_refusal(self._pending.database, key)
            box.count_refusal(self._on_disk().database, key)

    def prune(self, *, closed_before: str, most_bytes: int) -> None:
        """See `IncidentStore.prune`."""
        with self._lock, self._suffering():
            self._on_disk().prune(closed_before=closed_before, most_bytes=most_bytes)

    def close(self) -> None:
        """A last attempt to write what waits, and the end."""
        with self._lock:
            self.settle()
            for store in (self._disk, self._pending):
                if store is not None:
                    store.close()

    def _settle(self) -> IncidentStore:
        disk = self._on_disk()
        incidents, letters = tuple(self._pending.all()), box.all_letters(self._pending.database)
        if incidents or letters:
            disk.save_all(incidents, letters)
            self._pending.clear()
        self._remove()
        return disk

    def _count(self) -> None:
        self.unsent = sum(self._asked(lambda store: (box.count(store.database, self._removed),)))

    def _remove(self) -> None:
        if self._removed:
            box.remove(self._on_disk().database, tuple(self._removed))
            self._removed.clear()

    def _on_disk(self) -> IncidentStore:
        if self._disk is not None and not self._disk.database.is_in_place():
            self._tell(f"{self._path} was removed while it was in use: a new one is begun{self._about_lock()}")
            self._disk.close()
            self._disk = None
            self._pending.save_all(self._open.values())
        if self._disk is None:
            make_folder(self._folder)
            self._disk = IncidentStore(self._folder)
        return self._disk

    def _glimpse(self) -> dict[str, Incident]:
        """The open incidents of a disk that may only be read."""
        try:
            store = IncidentStore(self._folder, open_for_reading(self._path, is_disk_ill=True))
        except StoreError:
            return {}
        with contextlib.closing(store), contextlib.suppress(StoreError):
            return {incident.id: incident for incident in store.open_ones()}
        return {}

    def _asked(self, ask: Callable[[IncidentStore], Sequence[_T]]) -> tuple[_T, ...]:
        """What the disk says, if it can be asked, then what memory says."""
        return (*self._from_disk(ask, ()), *ask(self._pending))

    def _from_disk(self, ask: Callable[[IncidentStore], Sequence[_T]], otherwise: Sequence[_T]) -> Sequence[_T]:
        try:
            return ask(self._on_disk())
        except StoreError as error:
            self._suffer(error)
            return otherwise

    @contextlib.contextmanager
    def _suffering(self) -> Iterator[None]:
        """Around what writes: an error of the disk is a reason to go on in memory."""
        try:
            yield
        except StoreError as error:
            self._suffer(error)
        else:
            self.problem = ""

    def _suffer(self, error: StoreError) -> None:
        words = f"{error}; {error.remedy}"
        if words != self.problem:
            _log.error("%s", words)
        self.problem = words
        if isinstance(error, StoreCorruptError):
            self._begin_anew(error)

    def _begin_anew(self, error: StoreCorruptError) -> None:
        if self._disk is not None:
            self._disk.close()
            self._disk = None
        try:
            self._pending.save_all(self._open.values())
            aside, count = begin_anew(self._folder)
        except StoreError as second:
            self.problem = f"{second}; {second.remedy}"
            return
        self._tell(f"{error}: it is now {aside}, and a new one is begun with what could be read of it: {count} incidents")

    def _about_lock(self) -> str:
        is_there = (self._folder / LOCK_NAME).exists()
        return "" if is_there else f"; {LOCK_NAME} is gone, too: start no second agent there before this one is restarted"

    def _tell(self, notice: str) -> None:
        self.notice = notice
        _log.error("%s", notice)


def _newest(found: Iterable[Incident]) -> tuple[Incident, ...]:
    """One of each id, the last, in order."""
    by_id = {incident.id: incident for incident in found}
    return tuple(by_id[key] for key in sorted(by_id))
