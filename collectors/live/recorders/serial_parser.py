"""Parses dumps one after the other, within a memory limit that follows their size: many threads, one parser."""

import threading

from pardbg.collectors.memory_limit import limit_memory
from pardbg.collectors.parsing.flight_recorder import parse_flight_recorder
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.recording import Recording


class SerialParser:
    """Parsing holds the GIL anyway; one at a time, a small planted file cannot take the memory that a large one may."""

    def __init__(self) -> None:
        """Needs nothing."""
        self._lock = threading.Lock()

    def parse(self, data: bytes) -> Recording:
        """Reads a dump, pickle or JSON.

        Raises:
            ParseError: if it is none, or asks for more memory than a dump of its size can need.
        """
        with self._lock:
            limit_memory(len(data))
            try:
                return parse_flight_recorder(data)
            except MemoryError as error:
                raise ParseError("it asks for more memory than a dump of its size can need") from error
            except (OverflowError, UnicodeEncodeError, RecursionError) as error:
                raise ParseError(f"values that no recorder writes: {error}") from error
