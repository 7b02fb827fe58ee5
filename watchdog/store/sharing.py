"""Equal tables of different ranks become one object: what many nodes send holds everything once for each rank."""

from collections.abc import Hashable
from typing import TypeVar

from msgspec.structs import replace

from pardbg.watchdog.model.evidence import Evidence, FlightRecording
from pardbg.watchdog.model.recording import Recording

_Table = TypeVar("_Table", bound=Hashable)


class Sharing:
    """Remembers every table once. Linear in what it is given."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Hashable] = {}

    def of(self, item: Evidence) -> Evidence:
        """The same evidence."""
        seen = item.observation
        if not isinstance(seen, FlightRecording):
            return item
        return replace(
            item,
            host=self._one(item.host),
            observation=replace(seen, recording=self._share_tables(seen.recording)),
        )

    def _share_tables(self, recording: Recording) -> Recording:
        summary = recording.summary
        return replace(
            recording,
            groups=self._one(recording.groups),
            signatures=self._one(tuple(map(self._one, recording.signatures))),
            sites=self._one(tuple(map(self._one, recording.sites))),
            configs=self._one(tuple(map(self._one, recording.configs))),
            progress=self._one(recording.progress),
            summary=summary and replace(summary, functions=self._one(summary.functions), blocks=self._one(summary.blocks)),
        )

    def _one(self, table: _Table) -> _Table:
        return self._known.setdefault(table, table)  # type: ignore[return-value]
