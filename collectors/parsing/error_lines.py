"""The last lines of a log that speak of an error: quoted where no reader understands any, rather than "no error". Pure.

COST: constant: the last `TAIL_CHARS` of a log.
"""

import re

from pardbg.collectors.parsing.line_prefix import split_prefix
from pardbg.collectors.probe.secrets import hide_secrets
from pardbg.watchdog.model.text import printable_text

TAIL_CHARS = 64 * 1024
MOST_LINES = 3
_LONGEST_LINE = 200
_SPEAKS = re.compile(
    r"\b[A-Z]\w{0,60}(?:Error|Exception)\b|\b(?:ERROR|FATAL|CRITICAL|[Ff]atal|[Ff]ailed|[Ff]ailure|Killed|Aborted|panicked)\b"
    r"|\b[Ee]rror:|core dumped|Segmentation fault|exit(?:ed with)? (?:code|status):? -?[1-9]|return code = -?[1-9]|NCCL WARN"
)
_HARMLESS = re.compile(
    r"\b(?:0 (?:errors?|failed)|no errors?|error_file|\w{0,60}Warning|ignored|skipped|Root Cause|ChildFailedError|Traceback)\b",
    re.IGNORECASE,
)
_CALLS = re.compile(r"\s{2,}(?:File \"|raise |return |self\.|[\^~]+\s*$)")  # what a traceback shows on its way


def last_errors(text: str) -> tuple[str, ...]:
    """The last few such lines, in their order, each once, without prefixes and secrets."""
    found: list[str] = []
    for raw in reversed(text[-TAIL_CHARS:].splitlines()):
        if not _SPEAKS.search(raw[:2000]):
            continue
        _, line = split_prefix(raw)
        if _CALLS.search(line) or _HARMLESS.search(line):
            continue
        told = printable_text(hide_secrets(line.strip()[:_LONGEST_LINE]))
        if told and told not in found:
            found.append(told)
        if len(found) == MOST_LINES:
            break
    return tuple(reversed(found))
