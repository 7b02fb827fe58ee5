"""Lines by which a log shows that its writer trains on: what it logged as an exception before them, it had caught.

Only what is plainly a step, a loss, a progress bar, the end of the training or a way round is progress. What a dying program
still writes is none: where it failed (``failed at step 41``), its emergency checkpoint, summaries, warnings, and a progress bar
that is drawn once more where it stood, as when it is closed.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType

_HEAD = 400  # characters of a line that are looked at
_STEPS = re.compile(
    r"\b(?:step|iter|iteration|epoch|batch|global_step|steps)\b[\"']?(?: ?[:=\[#(]+ ?| +)\d"
    r"|\bloss\b[\"']?(?: ?[:=] ?| +)\d"
    r"|\d+/\d+ \[\d\d:\d\d",
    re.IGNORECASE,
)
_BAR = re.compile(r"(\d{1,12})/(\d{1,12}) \[\d\d:\d\d")
BAR_MARK = "%|"  # between the share and the bar itself
_NO_BARS: Mapping[int, int] = MappingProxyType({})
_DONE = re.compile(r"\btraining (?:is )?(?:completed?|finished|done)\b", re.IGNORECASE)
_SURVIVED = re.compile(
    r"\b(?:fall(?:ing)? ?back|skip(?:ping|ped)|retry(?:ing)?|retries left|continuing|resum(?:ing|ed))\b", re.IGNORECASE
)
_DYING = re.compile(
    r"\b(?:error|errors|exception|fail(?:ed|ure|s|ing)?|crash(?:ed|ing)?|abort(?:ed|ing)?|emergency|terminat(?:e|ed|ing)|exit(?:ing|ed)?"
    r"|interrupt(?:ed)?|kill(?:ed)?|stop(?:ped|ping)?|died|dying|fatal|critical|cannot|could not|not|last|until|up to)\b",
    re.IGNORECASE,
)
_NEGATED = re.compile(r"\b(?:not|before|until|never|once)\b", re.IGNORECASE)
_NOISE = re.compile(
    r"\s|$|terminate called|what\(\):|wandb:|Exception (?:ignored|in thread|raised from)|frame #|Fatal Python error|Thread 0x|"
    r"\[[IWEF]\d{4} |[IWEF]\d{4} |[\w.-]+:\d+:\d+ \[\d+\] NCCL |\S+\.py:\d+: \w+Warning|\[\w+:\d+\]|srun:|slurmstepd|={3}|-{3}"
)
_ANNOUNCES = re.compile(r"\b(?:error|critical|fatal|exception|failed)\b", re.IGNORECASE)


def read_bar(line: str) -> tuple[int, int] | None:
    """How far a progress bar has come, and of how much, where a line holds one."""
    bar = _BAR.search(line, 0, _HEAD)
    return (int(bar[1]), int(bar[2])) if bar is not None else None


def goes_on(line: str, bars: Mapping[int, int] = _NO_BARS) -> bool:
    """Whether a line shows that its writer trains on. ``line`` is without what launchers put before it.

    ``bars``: how far its progress bars had come before, by of how much.
    """
    head = line[:_HEAD].lstrip() if BAR_MARK in line[:_HEAD] else line[:_HEAD]
    if BAR_MARK in head and (bar := read_bar(head)) is not None and bar[0] <= bars.get(bar[1], 0):
        return False
    if _NOISE.match(head):
        return False  # a summary of numbers at the end, as trackers print it
    if _DONE.search(head) and not _NEGATED.search(head):
        return True
    return (_STEPS.search(head) is not None or _SURVIVED.search(head) is not None) and _DYING.search(head) is None


def says_survived(line: str) -> bool:
    """Whether a line says of the exception below it that the program goes round it, as ``skipping bad sample:`` does."""
    return line.rstrip().endswith(":") and _SURVIVED.search(line[:_HEAD]) is not None


def announces_failure(line: str) -> bool:
    """Whether a line speaks of a failure, so that its time is that of the exception below it."""
    return _ANNOUNCES.search(line[:_HEAD]) is not None


def is_ordinary(line: str) -> bool:
    """Whether a line is a program's own: neither indented nor what runtimes and launchers write when a process ends."""
    return _NOISE.match(line) is None
