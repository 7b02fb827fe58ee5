"""Evidence as `scan --save` keeps it where no other tool has a form for it: recordings, log findings, absences, more stacks."""

from collections.abc import Iterable

import msgspec

from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.evidence import Evidence

EVIDENCE_SCHEMA = "pardbg.evidence/1"


class _Saved(Noun, frozen=True, kw_only=True, tag_field="schema", tag=EVIDENCE_SCHEMA):
    evidence: tuple[Evidence, ...]


def encode_evidence(evidence: Iterable[Evidence]) -> bytes:
    """Writes evidence so that `parse_evidence` gives it back."""
    return msgspec.json.format(msgspec.json.encode(_Saved(evidence=tuple(evidence))))


def parse_evidence(data: bytes) -> tuple[Evidence, ...]:
    """Reads saved evidence.

    Raises:
        ParseError: if it is none.
    """
    try:
        return msgspec.json.decode(data, type=_Saved).evidence
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ParseError(f"not saved evidence: {error}") from error
