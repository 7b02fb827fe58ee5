"""torchrun's log folders: only the newest attempt of a launcher speaks of the job as it is now."""

import re
from collections.abc import Iterable

_ATTEMPT = re.compile(r"^(?P<base>.*/|)attempt_(?P<number>\d{1,6})/")


def newest_attempts(paths: Iterable[str]) -> dict[str, int]:
    """Per folder of attempts the largest number."""
    newest: dict[str, int] = {}
    for path in paths:
        match = _ATTEMPT.match(path)
        if match is not None:
            newest[match["base"]] = max(int(match["number"]), newest.get(match["base"], 0))
    return newest


def describe_outdated(path: str, newest: dict[str, int]) -> str | None:
    """Says in words that a file is of an earlier attempt; None if it is not."""
    match = _ATTEMPT.match(path)
    if match is None or int(match["number"]) == newest.get(match["base"]):
        return None
    return f"of attempt {int(match['number'])}, and attempt {newest[match['base']]} is newer: not used"
