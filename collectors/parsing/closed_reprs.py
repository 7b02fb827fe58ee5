"""Reads py-spy's rendering of ``*args`` and ``**kwargs`` as far as it holds only numbers, None, truth values and objects.

py-spy does not escape quotes: behind the first text nothing can be trusted, since a user's text may look like what is sought.
So reading ends at the first value of any other form, and whoever asks is told that it ended early.
"""

import re

from pardbg.watchdog.model.base import Noun

_OBJECT = r"<[\w.]{1,200} at 0x[0-9a-fA-F]{1,16}>"
_ATOM = rf"(?:None|True|False|-?\d{{1,19}}|{_OBJECT})"
_VALUE = re.compile(rf"{_ATOM}(?=[,)}}\]])|[\[(](?:{_ATOM}(?:, {_ATOM})*)?(?:, ?)?(?:\.\.\.)?[\])](?=[,)}}\]])")
_ATOM_ONLY = re.compile(rf"{_ATOM}$")
_NAME = re.compile(r'"([A-Za-z_]\w{0,63})": ')
_SEPARATOR = ", "


class ClosedValues(Noun, frozen=True, kw_only=True):
    """Names (empty for ``*args``) and renderings, in order; ``is_complete`` if nothing was left unread."""

    items: tuple[tuple[str, str], ...]
    is_complete: bool


def read_keywords(text: str) -> ClosedValues:
    """Reads ``{"src": 3, "group": <ProcessGroup at 0x7f>}``."""
    return _read(text, "{", "}", is_named=True)


def read_arguments(text: str) -> ClosedValues:
    """Reads ``(<Tensor at 0x7f>, 3, None)``."""
    return _read(text, "(", ")", is_named=False)


def is_atom(value: str) -> bool:
    """Whether a rendering is a single value, no list."""
    return _ATOM_ONLY.match(value) is not None


def _read(text: str, opening: str, closing: str, *, is_named: bool) -> ClosedValues:
    items: list[tuple[str, str]] = []
    if text == opening + closing:
        return ClosedValues(items=(), is_complete=True)
    place = len(opening) if text.startswith(opening) else len(text)
    while place < len(text):
        name = _NAME.match(text, place) if is_named else None
        start = name.end() if name else place
        value = _VALUE.match(text, start) if name or not is_named else None
        if value is None:
            break
        items.append((name[1] if name else "", value[0]))
        place = value.end()
        if text[place:] in {closing, "," + closing}:
            return ClosedValues(items=tuple(items), is_complete=True)
        if not text.startswith(_SEPARATOR, place):
            break
        place += len(_SEPARATOR)
    return ClosedValues(items=tuple(items), is_complete=False)
