"""Lines of the program and the libraries it uses: its device's errors, its allocator, expert dispatch, its end.

What Ray lists as "potential root causes" of a lost worker is boilerplate and tells nothing.
"""

import re

from pardbg.collectors.parsing.log_lines import LineRead
from pardbg.watchdog.model.log_event import AllocatorRetries, DispatchTimeout, LogEvent, OwnFailure, TrainingDone

WORDS = {
    "memory": ("out of memory", "illegal memory access"),
    "OutOfMemory": ("OutOfMemoryError",),
    "device-side": ("device-side assert",),
    "launch failure": ("unspecified launch failure",),
    "ECC": ("uncorrectable ECC",),
    "DeepEP": ("DeepEP",),
    "timeout": ("timeout (dispatch",),
    "train": ("train_runtime",),
    "retries": ("memory allocation retries",),
    "successfully finished": ("worker group successfully finished",),
    "raining ": ("raining done", "raining complete", "raining finished", "raining is complete"),
}
_OWN = re.compile(
    r"CUDA (?:error: )?out of memory|\bOutOfMemoryError\b|CUDA error: (?:an illegal memory access|device-side assert"
    r"|unspecified launch failure|uncorrectable ECC)|an illegal memory access was encountered|device-side assert triggered"
    r"|cuda runtime error \(\d{1,4}\) : uncorrectable ECC"
)
_WATCHDOG_DIED = "watchdog thread terminated with exception"  # of torch 1.13 and newer; and with it the process
_RETRIES = re.compile(r"\b([1-9]\d{0,8}) CUDA memory allocation retries")
_SURVIVED = re.compile(r"(?i)\bskip(?:ping|ped)?\b|\bretry(?:ing)?\b|\brecover(?:ing|ed)?\b|ran out of memory")
_DISPATCH = re.compile(r"DeepEP \w{0,20} ?(?:\w{1,20} )?timeout|DeepEP timeout check failed|timeout \(dispatch CPU\)")
_DONE = re.compile(
    r"'train_runtime'|elastic/agent/.*worker group successfully finished"
    r"|\b[Tt]raining (?:is )?(?:completed?|finished|done)\b(?! (?:step|epoch|batch|iteration))"
)


def is_survivable(line: str) -> bool:
    """Whether an error leaves the device usable: only an allocation that failed does; a watchdog's end is the rank's."""
    return ("out of memory" in line or "OutOfMemory" in line) and _WATCHDOG_DIED not in line


def read_program(read: LineRead) -> LogEvent | None:
    """What a line of the program tells; None for any other."""
    line = read.line
    if "NCCL INFO " in line or "NCCL WARN " in line:
        return None  # `nccl_lines` reads it; "NCCL watchdog thread terminated" is torch's
    if _OWN.search(line):
        return OwnFailure(rank=read.rank, is_survived=_SURVIVED.search(line) is not None, is_fatal=_WATCHDOG_DIED in line)
    if _DISPATCH.search(line):
        return DispatchTimeout(rank=read.rank)
    if (retries := _RETRIES.search(line)) is not None:
        return AllocatorRetries(rank=read.rank, count=int(retries[1]))
    return TrainingDone(rank=read.rank) if _DONE.search(line) else None
