"""A saved look at a process: what `scan --save` writes as ``process_rank<N>_s<M>.json``."""

import msgspec

from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.process import ProcessSample

PROCESS_SCHEMA = "pardbg.process/1"


class _Saved(Noun, frozen=True, kw_only=True, tag_field="schema", tag=PROCESS_SCHEMA):
    process: ProcessSample


def encode_process(sample: ProcessSample) -> bytes:
    """Writes a look so that `parse_process` gives it back."""
    return msgspec.json.format(msgspec.json.encode(_Saved(process=sample)))


def parse_process(data: bytes) -> ProcessSample:
    """Reads a saved look.

    Raises:
        ParseError: if it is none.
    """
    try:
        return msgspec.json.decode(data, type=_Saved).process
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ParseError(f"not a saved look at a process: {error}") from error
