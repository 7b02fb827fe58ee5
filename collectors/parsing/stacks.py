"""Stacks of one live process: py-spy's JSON and text, faulthandler's text, and our own form of py-spy's JSON.

Locals of a program are secrets. Only the few that say whom a collective waits for are kept, and only of frames of
``torch.distributed``; all others are dropped before anything is stored.
"""

import re

import msgspec

from pardbg.collectors.parsing.closed_reprs import is_atom, read_arguments, read_keywords
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.evidence import SourceContext, Stack, StackFrame, Thread

KEPT_LOCALS = frozenset({"src", "dst", "group", "op", "tag", "async_op", "group_src", "group_dst"})
ADDED_LOCALS = frozenset({"group_size", "group_rank", "group_desc", "is_default_group"})
"""What pardbg adds to frames and finds again in the files it saved (`collectors/live/groups.py`)."""

_OURS = "/collectors/probe/"  # the probe's thin wrappers around torch's functions are nobody's code

_LOCALS_FROM = re.compile(r"(?:^|/)torch/distributed/")
_WRAPPER = re.compile(r"(?:^|/)torch/distributed/c10d_logger\.py$")
_MAY_HOLD_A_GROUP = re.compile(r"Group|P2POp|Mesh")
_LONGEST_LOCAL = 200

_PROCESS = re.compile(r"Process (\d{1,10})(?::|$)")
_THREAD = re.compile(r'Thread (?:0x)?[0-9a-fA-F]+ \((?P<state>[a-z+]+)\)(?:: "(?P<name>.*)")?$')
_FRAME = re.compile(r" {4}(?P<name>.+) \((?P<file>.+?)(?::(?P<line>\d{1,9}))?\)$")
_FAULT_THREAD = re.compile(r"(?:Current thread|Thread) 0x[0-9a-fA-F]+(?: \[(?P<name>[^\]]*)\])? \(most recent call first\):$")
_FAULT_FRAME = re.compile(r'  File "(?P<file>.*)", line (?P<line>\d{1,9}) in (?P<name>.+)$')


class _Local(msgspec.Struct):
    name: str
    repr: str | None = None
    addr: int = 0
    arg: bool = False


class _Saved(msgspec.Struct):
    """What a `Stack` says beyond py-spy's JSON."""

    child: str = ""
    is_native: bool = False
    tells_lock: bool = True
    is_lock_held: bool = False


class _Frame(msgspec.Struct):
    name: str
    filename: str
    line: int = 0
    short_filename: str | None = None
    locals: list[_Local] | None = None
    source: SourceContext | None = None


class _Thread(msgspec.Struct):
    frames: list[_Frame]
    pid: int | None = None
    thread_name: str | None = None
    thread_id: int | str | None = None
    os_thread_id: int | None = None
    active: bool = False
    owns_gil: bool = False
    pardbg: _Saved | None = None


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
    saved = threads[0].pardbg if threads else None
    kept_names = KEPT_LOCALS if saved is None else KEPT_LOCALS | ADDED_LOCALS
    return Stack(
        pid=next((thread.pid for thread in threads if thread.pid is not None), None),
        child=saved.child if saved else "",
        is_native=saved is not None and saved.is_native,
        tells_lock=saved is None or saved.tells_lock,
        is_lock_held=saved is not None and saved.is_lock_held,
        threads=tuple(
            Thread(
                name=_name_thread(thread),
                is_active=thread.active,
                owns_gil=thread.owns_gil,
                frames=tuple(_read_frame(frame, kept_names) for frame in thread.frames if _OURS not in frame.filename),
            )
            for thread in threads
        ),
    )


def _name_thread(thread: _Thread) -> str:
    """py-spy knows no names before ``threading`` is imported; the kernel numbers a process after its main thread."""
    if thread.os_thread_id is not None and thread.os_thread_id == thread.pid:
        return "MainThread"
    return thread.thread_name or ("" if thread.thread_id is None else f"thread {thread.thread_id}")


def _read_frame(frame: _Frame, kept_names: frozenset[str]) -> StackFrame:
    kept = {}
    if frame.locals and _LOCALS_FROM.search(frame.filename):
        kept = {item.name: (item.repr or "")[:_LONGEST_LOCAL] for item in frame.locals if item.name in kept_names}
        if _WRAPPER.search(frame.filename):
            kept |= _read_wrapper({item.name: item.repr or "" for item in frame.locals})
    return StackFrame(name=frame.name, filename=frame.filename, line=max(frame.line, 0), locals=kept, source=frame.source)


def _read_wrapper(raw: dict[str, str]) -> dict[str, str]:
    """What torch's logging wrapper was called with: closed names and closed values only, since it also carries user objects.

    "is_default_group" is added if the call was given no group at all. One that was given can still be the default one.
    """
    if "kwargs" not in raw:
        return {}
    keywords, arguments = read_keywords(raw["kwargs"]), read_arguments(raw.get("args", "()"))
    kept = {name: value for name, value in keywords.items if name in KEPT_LOCALS and is_atom(value)}
    is_complete = keywords.is_complete and arguments.is_complete
    if is_complete and not any(_MAY_HOLD_A_GROUP.search(value) for _, value in (*keywords.items, *arguments.items)):
        kept["is_default_group"] = "True"
    return kept


def encode_stack(stack: Stack) -> bytes:
    """Writes a stack in py-spy's form, with what it says beyond that, so that `parse_stacks` gives it back.

    The number of the sample is not in it: it belongs into the file's name.
    """
    saved = _Saved(child=stack.child, is_native=stack.is_native, tells_lock=stack.tells_lock, is_lock_held=stack.is_lock_held)
    threads = [
        _Thread(
            pid=stack.pid,
            thread_name=thread.name or None,
            active=thread.is_active,
            owns_gil=thread.owns_gil,
            frames=list(map(_write_frame, thread.frames)),
            pardbg=saved if index == 0 else None,
        )
        for index, thread in enumerate(stack.threads)
    ]
    return msgspec.json.encode(threads)


def _write_frame(frame: StackFrame) -> _Frame:
    return _Frame(
        name=frame.name,
        filename=frame.filename,
        line=frame.line,
        short_filename=frame.filename.rpartition("/")[2],
        locals=[_Local(name=name, repr=value) for name, value in frame.locals.items()] or None,
        source=frame.source,
    )


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
        tells_lock=heads[-1].re is _THREAD,
        threads=tuple(
            Thread(name=name, is_active="active" in state, owns_gil="gil" in state, frames=tuple(stack))
            for name, state, stack in zip(names, map(_state_of, heads), frames, strict=True)
        ),
    )


def _state_of(head: re.Match[str]) -> str:
    return head["state"] if head.re is _THREAD else ""
