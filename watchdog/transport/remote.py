"""What is started on the nodes: this pardbg, by this interpreter (a shared file system has both), or what the user says."""

import importlib.util
import os
import shlex
import sys
from pathlib import Path

import pardbg
from pardbg.watchdog.errors import InputError

REMOTE_VARIABLE = "PARDBG_REMOTE"

_NEEDED = ("msgspec", "click")
_START = (
    "import sys; at = sys.argv.index('collect'); sys.path += [place for place in sys.argv[1:at] if place not in sys.path]; "
    "del sys.argv[1:at]; from pardbg.__main__ import main; main()"
)


def collect_command(given: str | None = None) -> tuple[str, ...]:
    """The words that start `pardbg collect` on a node.

    Args:
        given: what ``--remote-command`` says: the words that start pardbg there, as a shell would read them; else
            `PARDBG_REMOTE`; else this interpreter and this package, isolated from its folder and environment.

    Raises:
        InputError: if ``given`` has an open quote.
    """
    chosen = given or os.environ.get(REMOTE_VARIABLE, "")
    if chosen.strip():
        return (*split_command(chosen), "collect")
    return (sys.executable, "-I", "-c", _START, *_places(), "collect")


def split_command(text: str) -> tuple[str, ...]:
    """The words of a command that a user has given.

    Raises:
        InputError: if it has an open quote.
    """
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise InputError(f"the remote command {text!r} cannot be read: {error}", remedy="close its quotes") from error


def _places() -> list[str]:
    """Folders in which pardbg and what it needs are found, links left as they are."""
    found = [Path(pardbg.__file__).parent.parent]
    for name in _NEEDED:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin is not None:
            found.append(Path(spec.origin).parent.parent)
    return list(dict.fromkeys(str(place) for place in found))
