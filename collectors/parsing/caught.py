"""Headings of tracebacks that need not have ended their process: it died in a thread or a task only, or the program logged it.

Python heads the first kind itself (``threading.excepthook``, asyncio's handler); the second stands below a record of a logging
library, as ``logging.exception`` writes it. Neither says that the process went on, so that such an exception is in doubt only.
"""

import re

_HEAD = 200  # characters of a line that are looked at
_OF_THREAD = re.compile(r"Exception in thread |Task exception was never retrieved|future: <(?:Task|Future) ")
_RECORD = re.compile(r"(?:^|[\s\[|:(-])(?:ERROR|WARNING|WARN|CRITICAL)(?:[\s\]|:),-]|$)")
_LAST_WORDS = re.compile(
    r"(?<!non-)(?<!not )\b(?:fatal|exiting|aborting|terminating|shutting down|giving up|crash(?:ed|ing)?)\b", re.IGNORECASE
)
_GOES_ON = re.compile(r"\b(?:continuing|skipp(?:ing|ed)|ignor(?:ing|ed)|non-fatal|not fatal)\b", re.IGNORECASE)
_WHOLE_PROGRAM = "<module>"  # the outermost frame of what nobody caught


def is_head_of_survivor(line: str) -> bool:
    """Whether a line says that the exception below it ended no process: but a thread or a task, or the program goes on."""
    return _OF_THREAD.match(line) is not None or (is_head_of_record(line) and _GOES_ON.search(line[:_HEAD]) is not None)


def is_head_of_record(line: str) -> bool:
    """Whether a line is a record of an error, below which its traceback stands, and does not say that the program ends."""
    head = line[:_HEAD]
    return _RECORD.search(head) is not None and _LAST_WORDS.search(head) is None


def has_left_program(outermost: str) -> bool:
    """Whether a traceback reaches out of the program: ``outermost`` is the function of its first frame."""
    return outermost == _WHOLE_PROGRAM
