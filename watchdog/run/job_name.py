"""The name of a job that `pardbg run` starts: one that people can type, and that a scan reads as it was meant. Pure."""

import itertools
import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import PurePath

from pardbg.collectors.jobs.job_ids import PREFIXES
from pardbg.watchdog.errors import InputError

LONGEST_NAME = 200
_LONGEST_PROGRAM = 40
_NO_NAME = "none"  # what torchrun passes on where nobody gave an id: a scan takes it for no name
_SCRIPT = re.compile(r"\.(?:py|sh|bash)$")
_HARD_TO_TYPE = re.compile(r"[^A-Za-z0-9._+-]+")
_UNREADABLE = "\N{REPLACEMENT CHARACTER}"


def check_name(name: str, origin: str) -> str:
    """The name itself, if a scan finds the job by it.

    Args:
        name: what the user gave; bytes that are no UTF-8 are lone surrogates.
        origin: where, e.g. ``--job``.

    Raises:
        InputError: if it does not.
    """
    if problem := _problem(name):
        raise InputError(f"{origin} {name[:LONGEST_NAME]!r}: {problem}", remedy="give a name like train-7b-lr3")
    return name


def propose_name(words: Sequence[str], now: datetime, token: str) -> str:
    """A new name: what is trained, when it was started, and some digits that tell two of one minute apart."""
    program = _HARD_TO_TYPE.sub("-", _program_name(words))[:_LONGEST_PROGRAM].strip(".-") or "job"
    return f"{program}-{now:%m%d-%H%M}-{token}"


def _problem(name: str) -> str:
    if not name.strip():
        return "a job's name cannot be empty"
    if len(name) > LONGEST_NAME:
        return f"a job's name has at most {LONGEST_NAME} characters"
    if not name.isprintable() or _UNREADABLE in name:
        return "a job's name is plain text, without control characters"
    if name != name.strip() or name.startswith("-"):
        return "a job's name starts with neither a space nor a dash, and does not end with a space"
    if name == _NO_NAME:
        return "torchrun gives this name to jobs that have none"
    prefix, has_prefix, _ = name.partition(":")
    return f"a scan reads {prefix}: as the kind of a job's name" if has_prefix and prefix in PREFIXES else ""


def _program_name(words: Sequence[str]) -> str:
    """The training script if there is one, else the module, else the command."""
    for word in words:
        if _SCRIPT.search(word):
            return PurePath(word).stem
    for option, module in itertools.pairwise(words):
        if option in {"-m", "--module"}:
            return module.rpartition(".")[2]
    return PurePath(words[0]).name if words else ""
