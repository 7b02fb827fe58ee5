"""Stacks of one live process: py-spy's JSON and text, and faulthandler's text.

Locals of a program are secrets. Only the few that say whom a collective waits for are kept, and only of frames of
``torch.distributed``; all others are dropped before anything is stored.
"""

import re

import msgspec

from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.evidence import Stack, StackFrame, Thread

KEPT_LOCALS = frozenset({"src", "dst", "group", "op", "tag", "async_op", "group_src", "group_dst"})
_LOCALS_FROM = re.compile(r"(?:^|/)torch/distributed/")
_LONGEST_LOCAL = 200

_PROCESS = re.compile(r"Process (\d{1,10})(?::|$)")
_THREAD = re.compile(r'Thread (?:0x)?[0-9a-fA-F]+ \((?P<state>[a-z+]+)\)(?:: "(?P<name>.*)")?$')
_FRAME = re.compile(r" {4}(?P<name>.+) \((?P<file>.+?)(?::(?P<line>\d{1,9}))?\)$")
_FAULT_THREAD = re.compile(r"(?:Current thread|Thread) 0x[0-9a-fA-F]+(?: \[(?P<name>[^\]]*)\])? \(most recent call first\):$")
_FAULT_FRAME = re.compile(r'  File "(?P<file>.*)", line (?P<line>\d{1,9}) in (?P<name>.+)$')


class _Local(msgspec.Struct):
    name: str
    repr: str | None = None


class _Frame(msgspec.Struct):
    name: str
    filename: str
    line: int = 0
    short_filename: str | None = None
    locals: list[_Local] | None = None


class _Thread(msgspec.Struct):
    frames: list[_Frame]
    pid: int | None = None
    thread_name: str | None = None
    thread_id: int | str | None = None
    active: bool = False
    owns_gil: bool = False


def parse_stacks(data: bytes) -> Stack:
    """Reads the threads of one process, innermost frame first.

    Raises:
        ParseError: if the bytes are none of the three forms, or hold no thread.
    """
    stack = _parse_json(data) if data.lstrip()[:1] == b"[" else _parse_text(data.decode(errors="replace"))
    if not stack.threads:
        raise ParseError("no thread in it: the tool that wrote it saw nothing, or failed half way")
    return stack


def _parse_json(data: bytes) -> Stack:
    try:
        threads = msgspec.json.decode(data, type=list[_Thread])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ParseError(f"not py-spy's list of threads: {error}") from error
    return Stack(
        pid=next((thread.pid for thread in threads if thread.pid is not None), None),
        threads=tuple(
            Thread(
                name=thread.thread_name or _name_thread(thread),
                is_active=thread.active,
                owns_gil=thread.owns_gil,
                frames=tuple(map(_read_frame, thread.frames)),
            )
            for thread in threads
        ),
    )


def _name_thread(thread: _Thread) -> str:
    """py-spy knows no name before the thread has set one; the first thread of a process is the main one."""
    return "" if thread.thread_id is None else f"thread {thread.thread_id}"


def _read_frame(frame: _Frame) -> StackFrame:
    kept = {}
    if frame.locals and _LOCALS_FROM.search(frame.filename):
        kept = {item.name: (item.repr or "")[:_LONGEST_LOCAL] for item in frame.locals if item.name in KEPT_LOCALS}
    return StackFrame(name=frame.name, filename=frame.filename, line=max(frame.line, 0), locals=kept)


def _parse_text(text: str) -> Stack:
    pid: int | None = None
    heads: list[re.Match[str]] = []
    frames: list[list[StackFrame]] = []
    for raw in text.splitlines():
        line = raw.rstrip()
        if (head := _THREAD.match(line) or _FAULT_THREAD.match(line)) is not None:
            heads.append(head)
            frames.append([])
        elif frames and (frame := _FRAME.match(line) or _FAULT_FRAME.match(line)) is not None:
            frames[-1].append(StackFrame(name=frame["name"], filename=frame["file"], line=int(frame["line"] or 0)))
        elif pid is None and (process := _PROCESS.match(line)) is not None:
            pid = int(process[1])
    if not heads:
        raise ParseError("not a list of threads, neither py-spy's nor faulthandler's")
    names = [head["name"] or "" for head in heads]
    if heads[-1].re is _FAULT_THREAD and "MainThread" not in names:
        names[-1] = "MainThread"  # faulthandler names none, and lists the newest thread first
    return Stack(
        pid=pid,
        threads=tuple(
            Thread(name=name, is_active="active" in state, owns_gil="gil" in state, frames=tuple(stack))
            for name, state, stack in zip(names, map(_state_of, heads), frames, strict=True)
        ),
    )


def _state_of(head: re.Match[str]) -> str:
    return head["state"] if head.re is _THREAD else ""
