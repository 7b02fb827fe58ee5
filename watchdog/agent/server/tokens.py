"""The file of bearer tokens: who somebody is who knows one. It is read again when it changes.

A line each: ``sha256:HEX uid=1000`` or ``sha256:HEX admin``; ``look`` at the end gives the right to look at processes, too.
``#`` begins a remark. HEX is what ``printf %s TOKEN | sha256sum`` says: the file holds no token. While the file cannot be used,
no token counts.
"""

import hashlib
import hmac
import os
import re
from collections.abc import Callable
from pathlib import Path

from pardbg.watchdog.errors import InputError
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.transport.private_file import read_private

_LINE = re.compile(r"sha256:(?P<hex>[0-9a-fA-F]{64})\s+(?:uid=(?P<uid>\d{1,10})|(?P<admin>admin))(?P<look>\s+look)?", re.ASCII)


class Token(Noun, frozen=True, kw_only=True):
    """What a token gives. ``uid`` is None for an admin."""

    digest: bytes
    uid: int | None
    may_look: bool

    @property
    def name(self) -> str:
        """For the log."""
        who = "admin" if self.uid is None else f"uid {self.uid}"
        return f"{who} (token {self.digest.hex()[:8]})"


def parse_tokens(text: str) -> tuple[Token, ...]:
    """Reads the lines.

    Raises:
        InputError: if one is wrong; it is not quoted.
    """
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].strip()
        match = _LINE.fullmatch(words)
        if match is not None:
            uid = None if match["admin"] else int(match["uid"])
            found.append(Token(digest=bytes.fromhex(match["hex"]), uid=uid, may_look=bool(match["look"])))
        elif words:
            raise InputError(f"line {number} of the tokens is not understood", remedy="write: sha256:HEX uid=N|admin [look]")
    return tuple(found)


class Tokens:
    """A file of them."""

    def __init__(self, path: Path, tell: Callable[[str, str], None]) -> None:
        """Reads it.

        Args:
            path: the file.
            tell: is told what is wrong with it later, `Diary.note_failure`.

        Raises:
            InputError: if it cannot be used.
        """
        self._path, self._tell = path, tell
        self._state = _state_of(path)
        self._tokens = self._read()

    def find(self, token: str) -> Token | None:
        """Whose token it is. All are compared, each in constant time."""
        self._refresh()
        digest = hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
        found = None
        for known in self._tokens:
            if hmac.compare_digest(known.digest, digest):
                found = known
        return found

    def _refresh(self) -> None:
        state = _state_of(self._path)
        if state == self._state:
            return
        self._state = state
        try:
            self._tokens = self._read()
        except InputError as error:
            self._tokens = ()
            self._tell("tokens", f"{error}; no token counts until it is right: {error.remedy}")

    def _read(self) -> tuple[Token, ...]:
        return parse_tokens(read_private(self._path, "the file of --tokens").decode("utf-8", "replace"))


def _state_of(path: Path) -> tuple[int, ...]:
    """What changes when a file is written, replaced, or given other rights."""
    try:
        status = os.stat(path)  # noqa: PTH116 - one call
    except OSError:
        return ()
    return status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_size
