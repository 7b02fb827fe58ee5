"""The table of causes: from what was seen of a rank to why it is on the host. The rules are data: `causes.json`."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

import msgspec

from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.base import Noun
from pardbg.watchdog.model.evidence import StackFrame
from pardbg.watchdog.model.names import Cause
from pardbg.watchdog.model.process import ProcessSample
from pardbg.watchdog.model.short_names import plain_name

PATTERNS = ("file", "function", "call", "native", "state", "system_call", "wait_channel", "blocked_on", "child")


class CauseRule(Noun, frozen=True, kw_only=True):
    """One row: patterns, and what they mean. All patterns a rule has must be found. ``words`` completes "rank N is ...".

    Attributes:
        file: pattern on the file of a frame, as `plain_name` has it: `site-packages/torch/storage.py`, `lib/python3/queue.py`.
        function: pattern on the function of the same frame.
        call: pattern on the calls in the source line of the innermost frame of the training code.
        native: pattern on a function of the native stack (symbol), where one was taken.
        state: the process state, as in ``/proc/PID/stat``.
        system_call: pattern on the name of the system call the main thread is in; ``running`` if it is in none.
        wait_channel: pattern on the kernel function it sleeps in.
        blocked_on: pattern on what that call's file descriptor is.
        is_store: whether that is the connection to the job's store.
        holds_gil: whether a thread that does not run Python code holds the interpreter lock.
        owns_gil: whether the main thread holds the interpreter lock.
        uses_device: whether the process has an accelerator open.
        child: pattern on ``name state`` of one of its child processes.
        encloses: what the rule names calls back into training code (a data set's own ``__getitem__``), so it is looked
            for beyond the first frame of the training code as well.
        uses_kernels: what the rule names runs kernels and waits for them, to time them: it waits for its device, and nobody.
    """

    cause: Cause
    words: str
    file: str | None = None
    function: str | None = None
    call: str | None = None
    native: str | None = None
    state: str | None = None
    system_call: str | None = None
    wait_channel: str | None = None
    blocked_on: str | None = None
    is_store: bool | None = None
    holds_gil: bool | None = None
    owns_gil: bool | None = None
    uses_device: bool | None = None
    child: str | None = None
    encloses: bool = False
    uses_kernels: bool = False
    advice: str
    command: str | None = None

    @property
    def names_frames(self) -> bool:
        """Whether the rule looks for a frame."""
        return self.file is not None or self.function is not None


@dataclass(frozen=True)
class Sight:
    """All that was seen of one rank at one moment.

    ``depth``: how many of the frames, innermost first, lie within libraries that the training code called last, plus one.
    """

    frames: Sequence[StackFrame] = ()
    depth: int = 0
    process: ProcessSample | None = None
    holds_gil: bool = False
    owns_gil: bool | None = None
    native: Sequence[StackFrame] = ()

    @property
    def own_frame(self) -> StackFrame | None:
        """The innermost frame of the training code."""
        return self.frames[self.depth - 1] if 0 < self.depth <= len(self.frames) else None


class _Table(Noun, frozen=True, kw_only=True):
    rules: tuple[CauseRule, ...]


@lru_cache(maxsize=1)
def cause_rules() -> tuple[CauseRule, ...]:
    """The shipped rules, in the order they are tried."""
    return parse_rules((files(__package__) / "causes.json").read_bytes())


def parse_rules(data: bytes) -> tuple[CauseRule, ...]:
    """Reads a table of rules: an object with ``rules``, a list of rows.

    Raises:
        ParseError: if it is none, or a pattern is no regular expression.
    """
    try:
        rules = msgspec.json.decode(data, type=_Table).rules
        for rule in rules:
            for name in PATTERNS:
                re.compile(getattr(rule, name) or "")
    except (msgspec.DecodeError, UnicodeDecodeError, re.error) as error:
        raise ParseError(f"not a table of causes: {error}") from error
    return rules


def find_cause(sight: Sight, rules: Sequence[CauseRule]) -> tuple[CauseRule, StackFrame | None] | None:
    """The first rule that matches, and the frame it matched; the training code's own frame if it names none."""
    for rule in rules:
        if not _fits_process(rule, sight):
            continue
        if not rule.names_frames:
            return rule, sight.own_frame
        frames = sight.frames if rule.encloses else sight.frames[: sight.depth]
        for index, frame in enumerate(frames):
            if _found(rule.file, plain_name(frame.filename)) and _found(rule.function, frame.name):
                return rule, _outermost(sight.frames, index)
    return None


def _fits_process(rule: CauseRule, sight: Sight) -> bool:
    process, own = sight.process, sight.own_frame
    calls = own.source.calls if own is not None and own.source is not None else ()
    return (
        _any_found(rule.call, calls)
        and _any_found(rule.native, [frame.name for frame in sight.native])
        and _any_found(rule.child, [f"{child.name} {child.state}" for child in process.children] if process else [])
        and _found(rule.state, process.state if process else "")
        and _found(rule.system_call, (process.system_call if process else None) or "")
        and _found(rule.wait_channel, (process.wait_channel if process else None) or "")
        and _found(rule.blocked_on, (process.blocked_on if process else None) or "")
        and rule.is_store in {None, process.is_store if process else False}
        and rule.holds_gil in {None, sight.holds_gil}
        and rule.owns_gil in {None, sight.owns_gil}
        and rule.uses_device in {None, process.uses_device if process else False}
    )


def _outermost(frames: Sequence[StackFrame], index: int) -> StackFrame:
    """Of a stretch of frames in one file the outermost: `torch.save`, not its inner helper."""
    while index + 1 < len(frames) and frames[index + 1].filename == frames[index].filename:
        index += 1
    return frames[index]


@lru_cache(maxsize=16384)  # ranks stand in the same few files
def _found(pattern: str | None, text: str) -> bool:
    return pattern is None or re.search(pattern, text) is not None


def _any_found(pattern: str | None, texts: Sequence[str]) -> bool:
    return pattern is None or any(re.search(pattern, text) for text in texts)
