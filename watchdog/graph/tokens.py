"""The tokens of many ranks, made once where recordings share their tables."""

from collections.abc import Mapping

from pardbg.watchdog.model.matching import Token, tokenize
from pardbg.watchdog.model.recording import Operation, Recording


class Tokens:
    """Equal tokens are one object, so that they may be compared by identity. Recordings must outlive it."""

    def __init__(self) -> None:
        self._caches: dict[tuple[int, int], dict[tuple[int, int], Token]] = {}
        self._known: dict[Token, Token] = {}

    def of(self, recording: Recording, operations: Mapping[int, Operation]) -> dict[int, Token]:
        """Of operations of the recording, by sequence number."""
        cache = self._caches.setdefault((id(recording.signatures), id(recording.sites)), {})
        tokens: dict[int, Token] = {}
        for seq, operation in operations.items():
            token = cache.get((operation.signature, operation.site))
            if token is None:
                made = tokenize(recording, operation, {})
                token = cache[operation.signature, operation.site] = self._known.setdefault(made, made)
            tokens[seq] = token
        return tokens
