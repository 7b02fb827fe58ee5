"""Of whom a file speaks, by its path alone: the contract's rule for the rank, and what else names tell."""

import re
from pathlib import PurePath

from pardbg.watchdog.model.base import Noun

_LARGEST_RANK = 10_000_000  # longer numbers are dates, process ids and times
_SAMPLE_SUFFIX = re.compile(r"[_.-]s(\d{1,6})$")
_SAMPLE_FOLDER = re.compile(r"s(\d{1,6})$")
_EXTENSIONS = re.compile(r"(\.(?:jsonl?|txt|log|out|err|pkl|pickle|dump|bin|stack|pyspy|py-spy|trace))+$", re.IGNORECASE)
_NOT_GLOBAL = re.compile(r"(?:local|node|group)[_-]?rank[_-]?\d+", re.IGNORECASE)
_NAMED_RANK = re.compile(r"rank_?(\d+)(?![\d.]*[\dA-Za-z])", re.IGNORECASE)
_HOST_THEN_RANK = re.compile(r"trace_rank_(?P<host>[\w.-]+?)_(?P<rank>\d+)$")
_HOST_DOT_PCI = re.compile(r"(?P<host>[A-Za-z][\w-]*(?:\.[\w-]+)*?)\.pci\w*_rank_?(?P<rank>\d+)$")
_INTEGER = re.compile(r"\d+")
_OF_SCHEDULER = re.compile(r"^slurm-\d+(?:_\d+)?$|\.[oe]\d+$")  # as Slurm and PBS call the log of a whole job
_KERNEL_LOG = re.compile(r"(?:kernel|dmesg)_(?P<host>[\w.-]+?)(?:\.(?:log|txt))?$")
_DUMP = re.compile(
    r"trace_rank_|^fr_rank_?\d|^_?dump_?\d+|\.pci\w*_rank_?\d|nccl_trace|comm_lib_trace|flight_?rec", re.IGNORECASE
)
_STACKS = re.compile(r"stack|py-?spy", re.IGNORECASE)
_SERIES = re.compile(r"^(?:gpu|nvml|dcgm)", re.IGNORECASE)
_ROUTING = re.compile(r"^(?:routing|moe|router)", re.IGNORECASE)
_PROCESS = re.compile(r"process_rank_?\d")
_LOG = re.compile(
    r"\.(?:log|out|err)(?:\.\d+)?$|^(?:stdout|stderr|log)(?:[._].*)?$|[._](?:log|stdout|stderr)\.txt$", re.IGNORECASE
)


class FileName(Noun, frozen=True, kw_only=True):
    """What a path says. ``local_rank`` comes from a numeric folder and only where the name itself has no rank.

    ``is_guess``: the rank is only the last number of the name, which may as well be a job's, a node's or an attempt's.
    """

    rank: int | None = None
    is_guess: bool = False
    local_rank: int | None = None
    host: str | None = None
    sample: int | None = None


def read_name(path: str) -> FileName:
    """Applies the contract's rule: ``rank_<N>``, else the last integer of the name, else the numeric folder (local rank)."""
    pure = PurePath(path)
    stem = _EXTENSIONS.sub("", pure.name)
    sample = _find_sample(pure, stem)
    stem = _EXTENSIONS.sub("", _SAMPLE_SUFFIX.sub("", stem))
    if is_kernel_log(pure.name):
        match = _KERNEL_LOG.match(pure.name)
        return FileName(host=match["host"] if match else None, sample=sample)
    hosted = _HOST_THEN_RANK.search(stem) or _HOST_DOT_PCI.search(stem)
    if hosted is not None:
        return FileName(rank=_as_rank(hosted["rank"]), host=hosted["host"], sample=sample)
    rank = _find_rank(stem)
    local_rank = _as_rank(pure.parent.name) if rank is None and pure.parent.name.isdecimal() else None
    is_guess = rank is not None and _NAMED_RANK.search(_NOT_GLOBAL.sub("", stem)) is None
    return FileName(rank=rank, is_guess=is_guess, local_rank=local_rank, sample=sample)


def is_kernel_log(name: str) -> bool:
    """Whether the name is one of a kernel log, where numbers belong to the host."""
    return _KERNEL_LOG.match(name) is not None


def is_dump_name(name: str) -> bool:
    """Whether only a flight recorder's dump is called so."""
    return _DUMP.search(name) is not None


def is_stacks_name(name: str) -> bool:
    """Whether stacks are called so."""
    return _STACKS.search(name) is not None


def is_process_name(name: str) -> bool:
    """Whether saved looks at processes are called so."""
    return _PROCESS.match(name) is not None


def is_series_name(name: str) -> bool:
    """Whether series of GPUs are called so."""
    return _SERIES.match(name) is not None


def is_routing_name(name: str) -> bool:
    """Whether routing counts are called so."""
    return _ROUTING.match(name) is not None


def is_log_name(name: str) -> bool:
    """Whether logs are called so."""
    return _LOG.search(name) is not None


def _find_sample(path: PurePath, stem: str) -> int | None:
    match = _SAMPLE_SUFFIX.search(stem) or _SAMPLE_FOLDER.match(path.parent.name)
    return int(match[1]) if match else None


def _find_rank(stem: str) -> int | None:
    stem = _NOT_GLOBAL.sub("", stem)
    named = _NAMED_RANK.search(stem)
    if named is not None:
        return _as_rank(named[1])
    if _OF_SCHEDULER.search(stem):
        return None
    numbers = _INTEGER.findall(stem)
    return _as_rank(numbers[-1]) if numbers else None


def _as_rank(digits: str) -> int | None:
    return int(digits) if digits.isascii() and len(digits) <= len(str(_LARGEST_RANK)) and int(digits) < _LARGEST_RANK else None
