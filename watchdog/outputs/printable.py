r"""Text from logs and file names made safe to show: control and invisible characters become visible, e.g. ``\x1b``."""

import unicodedata
from typing import Any

import msgspec

from pardbg.watchdog.model.report import Report

_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories that steer a terminal, reorder text, cannot be encoded, or break a line."""


def printable(report: Report) -> Report:
    """Copy a report with every text made printable: done on the whole, so that no field can be forgotten."""
    return msgspec.convert(_map_texts(msgspec.to_builtins(report)), Report)


def printable_text(text: str) -> str:
    """Show characters that would act instead of being read. A tab becomes a space; white space at the ends goes."""
    text = text.strip()
    if text.isascii() and text.isprintable():
        return text
    return "".join(_show(character) for character in text.replace("\t", " "))


def _show(character: str) -> str:
    return ascii(character)[1:-1] if unicodedata.category(character) in _INVISIBLE else character


def _map_texts(value: Any) -> Any:
    if isinstance(value, str):
        return printable_text(value)
    if isinstance(value, dict):
        return {printable_text(key): _map_texts(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_map_texts(item) for item in value]
    return value
