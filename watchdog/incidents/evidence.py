"""The folders of evidence as the agent uses them: a disk that does not take them is a problem to be told, not an error."""

import contextlib
import itertools
import logging
import re
import secrets
from collections.abc import Collection, Iterator
from pathlib import Path

from pardbg.watchdog.incidents.folders import Folders
from pardbg.watchdog.model.base import Noun

LEAST_FREE_BYTES = 64 << 20
_FIGURES = re.compile(r"\d+")
_log = logging.getLogger("pardbg.incidents")


class Retention(Noun, frozen=True, kw_only=True):
    """What is kept of incidents that are over: for how long (seconds), and how much (bytes)."""

    age_s: float = 30 * 86400.0
    evidence_bytes: int = 10 << 30
    database_bytes: int = 256 << 20


class Evidences:
    """One thread calls it; others may read its attributes.

    Attributes:
        has_room: whether a scan should save any.
    """

    def __init__(self, state_folder: Path) -> None:
        self._folders = Folders(state_folder)
        run = secrets.token_hex(2)  # a scan of an agent that was killed may still be writing
        self._marks = (f"{run}-{number}" for number in itertools.count(1))
        self._problem = self._told = ""
        self.has_room = True

    @property
    def problem(self) -> str:
        """Why evidence cannot be kept, empty if it can."""
        return self._problem

    def begin(self) -> None:
        """Puts right what an agent that was killed has left."""
        with self._noting():
            self._folders.begin()
        self.look_for_room()

    def look_for_room(self) -> None:
        """Looks how much room there is."""
        try:
            self._folders.make()  # somebody may have removed it
            free = self._folders.free_bytes()
        except OSError as error:
            self.has_room = False
            self._tell(f"{error.filename}: {error.strerror}: verdicts are kept without evidence")
            return
        is_new, self.has_room = self.has_room is not (free >= LEAST_FREE_BYTES), free >= LEAST_FREE_BYTES
        if not self.has_room:
            self._tell(f"only {free >> 20} MiB are free: verdicts are kept without evidence")
        elif is_new:
            self._problem = self._told = ""

    def partial(self, incident_id: str) -> Path:
        """Where one scan may write."""
        return self._folders.partial(incident_id, next(self._marks))

    def id_of(self, folder: Path | None) -> str:
        """The incident whose evidence a scan has written there; empty if none."""
        return self._folders.id_of(folder) if folder is not None else ""

    def keep(self, folder: Path, incident_id: str) -> None:
        """What a scan has written there becomes the evidence of an incident, if it is whole."""
        with self._noting():
            if not self._folders.keep(folder, incident_id):
                self._tell(f"the scan of {incident_id} could not save all of what it saw: nothing of it is kept")

    def drop(self, folder: Path) -> None:
        """Removes what a scan has written."""
        with self._noting():
            self._folders.drop(folder)

    def find(self, incident_id: str) -> Path | None:
        """The evidence of an incident."""
        return self._folders.find(incident_id)

    def prune(self, kept: Collection[str], began_before_s: float, most_bytes: int) -> None:
        """Removes what is too old or too much."""
        with self._noting():
            self._folders.prune(kept, began_before_s=began_before_s, most_bytes=most_bytes)

    @contextlib.contextmanager
    def _noting(self) -> Iterator[None]:
        try:
            self._problem = ""
            yield
        except OSError as error:
            self._tell(f"{error.filename or 'evidence'}: {error.strerror or error}")

    def _tell(self, problem: str) -> None:
        """Logs it once, also if only figures in it change."""
        self._problem = problem
        gist = _FIGURES.sub("", problem)
        if gist != self._told:
            _log.error("%s", problem)
        self._told = gist
