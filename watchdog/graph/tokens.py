"""The tokens of many ranks, made once where recordings share their tables."""

from collections.abc import Mapping

from pardbg.watchdog.model.matching import Token, tokenize
from pardbg.watchdog.model.recording import NO_SITE, Operation, Recording


class Tokens:
    """Equal tokens are one object, so that they may be compared by identity. Recordings must outlive it."""

    def __init__(self) -> None:
        self._cache: dict[tuple[int, int], Token] = {}
        self._known: dict[Token, Token] = {}

    def of(self, recording: Recording, operations: Mapping[int, Operation]) -> dict[int, Token]:
        """Of operations of the recording, by sequence number."""
        signatures, sites, cache = recording.signatures, recording.sites, self._cache
        tokens: dict[int, Token] = {}
        for seq, operation in operations.items():
            site = None if operation.site == NO_SITE else sites[operation.site]
            key = (id(signatures[operation.signature]), id(site))
            token = cache.get(key)
            if token is None:
                made = tokenize(recording, operation, {})
                token = cache[key] = self._known.setdefault(made, made)
            tokens[seq] = token
        return tokens
