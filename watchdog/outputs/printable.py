r"""Text from logs and file names made safe to show: control and invisible characters become visible, e.g. ``\x1b``."""

from typing import Any

import msgspec

from pardbg.watchdog.model.report import Report
from pardbg.watchdog.model.text import printable_text


def printable(report: Report) -> Report:
    """Copy a report with every text made printable: done on the whole, so that no field can be forgotten."""
    return msgspec.convert(_map_texts(msgspec.to_builtins(report)), Report)


def _map_texts(value: Any) -> Any:
    if isinstance(value, str):
        return printable_text(value)
    if isinstance(value, dict):
        return {printable_text(key): _map_texts(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_map_texts(item) for item in value]
    return value
