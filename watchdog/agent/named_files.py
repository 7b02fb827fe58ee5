"""Files that the command line names: looked at before the agent starts, not when the first hang must be told."""

import ssl
from pathlib import Path

from pardbg.watchdog.errors import InputError
from pardbg.watchdog.incidents.tokens import TokenError, read_token
from pardbg.watchdog.transport.private_file import read_private


def check_token(path: Path, what: str) -> None:
    """Whether it holds one token that nobody else can read.

    Raises:
        InputError: if not.
    """
    read_private(path, what)
    try:
        read_token(str(path))
    except TokenError as error:
        raise InputError(f"cannot use {what}: {error}", remedy="write one token into it, and nothing else") from error


def check_authorities(path: Path, what: str) -> None:
    """Whether it holds certificates.

    Raises:
        InputError: if not.
    """
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
    except (OSError, ssl.SSLError) as error:
        raise InputError(f"cannot use {what}, {path}: {error.strerror or error}", remedy="give a PEM file") from error
