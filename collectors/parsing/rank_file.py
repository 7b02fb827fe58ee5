"""``rank.json``: what a rank's probe says about its process, once at its start and again when it joins its first group.

It belongs to the job's user and may hold anything: numbers out of range and text that steers a terminal are not taken over.
"""

from typing import Annotated

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from pardbg.collectors.jobs.environment import KEPT_NAMES, RECORDER_NAMES
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.members import MAX_WORLD_SIZE
from pardbg.watchdog.model.text import printable_text

RANK_SCHEMA = "pardbg.rank/1"
MOST_BYTES = 256 * 1024
_SIGNALS = range(34, 65)  # the real-time signals that no C library keeps for itself: never one that ends or stops anything
_LONGEST_VALUE = 4096
_MOST_PROBLEMS = 16

_Number = Annotated[int, Meta(ge=0, lt=2**62)]
_RankNumber = Annotated[int, Meta(ge=0, lt=MAX_WORLD_SIZE)]


class RankFile(Noun, frozen=True, kw_only=True, tag_field="schema", tag=RANK_SCHEMA):
    """One rank's process, in the words of its probe. None: not known.

    Attributes:
        started_ticks: start of the process in clock ticks since boot; with pid and boot_id it identifies the process.
        created_ns: when this was first written, epoch ns.
        is_member: whether the process has joined a process group.
        environment: the closed list of names that say which rank of which job it is.
        python: version of its interpreter, ``torch`` that of torch.
        dumps: what torch puts a rank's number behind, for a dump that it writes itself.
        pipe: what torch puts a rank's number and ``.pipe`` behind, for the FIFO that asks it for a dump.
        last_dump: where the probe writes a dump when the rank ends.
        stack_signal: the real-time signal that makes it write its stacks.
        cgroup: folder of its cgroup.
        oom_kills: processes of that cgroup that the kernel had killed for memory when it started.
        problems: what the probe could not do, and why.
    """

    rank: _RankNumber | None = None
    local_rank: _RankNumber | None = None
    world_size: _RankNumber | None = None
    attempt: _Number | None = None
    pid: _Number | None = None
    started_ticks: _Number | None = None
    host: str | None = None
    boot_id: str | None = None
    created_ns: _Number | None = None
    is_member: bool | None = None
    environment: dict[str, str] | None = None
    python: str | None = None
    torch: str | None = None
    dumps: str | None = None
    pipe: str | None = None
    last_dump: str | None = None
    stack_signal: _Number | None = None
    cgroup: str | None = None
    oom_kills: _Number | None = None
    problems: tuple[str, ...] | None = None


class _Head(Noun, frozen=True, kw_only=True):
    schema: str


_TEXTS = ("host", "boot_id", "python", "torch", "cgroup")
_PATHS = ("dumps", "pipe", "last_dump")
_KEPT = KEPT_NAMES - RECORDER_NAMES


def parse_rank_file(data: bytes) -> RankFile:
    """Reads the file.

    Raises:
        ParseError: if it is none, or a value in it is of no kind that a probe writes.
    """
    try:
        msgspec.json.decode(data[:MOST_BYTES], type=_Head)
        raw = msgspec.json.decode(data[:MOST_BYTES], type=RankFile)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ParseError("not what a probe says of its rank") from error
    texts = {name: _shown(getattr(raw, name)) for name in _TEXTS}
    paths = {name: _path(getattr(raw, name)) for name in _PATHS}
    return replace(
        raw,
        **texts,
        **paths,
        environment={name: _shown(value) or "" for name, value in (raw.environment or {}).items() if name in _KEPT},
        stack_signal=raw.stack_signal if raw.stack_signal in _SIGNALS else None,
        problems=tuple(_shown(problem) or "" for problem in (raw.problems or ())[:_MOST_PROBLEMS]),
    )


def _shown(text: str | None) -> str | None:
    return None if text is None else printable_text(text[:_LONGEST_VALUE])


def _path(text: str | None) -> str | None:
    """A path is used, not only shown: one that cannot be shown as it is, is none."""
    is_usable = text is not None and text.startswith("/") and len(text) < _LONGEST_VALUE and printable_text(text) == text
    return text if is_usable else None
