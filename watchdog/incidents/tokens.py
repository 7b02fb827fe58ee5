"""A token from a file that only its owner can read. It is never logged, nor part of an error."""

import os
import stat

_MOST_BYTES = 8192
_OTHERS = 0o077


class TokenError(Exception):
    """It cannot be used; the words say why, not what it is."""


def read_token(path: str) -> str:
    """The token.

    Raises:
        TokenError: if there is none, or others may read it.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise TokenError(f"{path} cannot be read: {error.strerror}") from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise TokenError(f"{path} is no file")
        if status.st_mode & _OTHERS:
            raise TokenError(f"{path} may be read by others: chmod 600 {path}")
        token = os.read(descriptor, _MOST_BYTES).decode("ascii", "replace").strip()
    except OSError as error:
        raise TokenError(f"{path} cannot be read: {error.strerror}") from error
    finally:
        os.close(descriptor)
    if len(token.splitlines()) > 1:
        raise TokenError(f"{path} holds more than one line: write one token into it, and nothing else")
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise TokenError(f"{path} holds no token: one word of printable ASCII")
    return token
