"""Where CPython lies in a process, which version it is, and whether it still runs. Pure."""

import re
import struct

from pardbg.collectors.attach.address_space import Mapping
from pardbg.collectors.attach.symbols import Read, Symbol, find_symbols
from pardbg.collectors.attach.thread_kind import EVALUATION
from pardbg.watchdog.model.base import Noun

_CANDIDATE = re.compile(r"/(?:libpython3\.(\d+)([a-z]*)\.so[\d.]*|python3(?:\.(\d+)([a-z]*))?)(?: \(deleted\))?$")
_NEEDED = ("PyGILState_Ensure", "PyRun_SimpleStringFlags", "PyGILState_Release", "_PyRuntime", EVALUATION)
_STATE_AT = {10: (0x0C, 0x10), 11: (0x10, 0x18), 12: (0x10, 0x18), 13: (0x258, 0x260)}
"""By minor version, in `_PyRuntime`: is it initialized (int), and the thread that finalizes it (pointer)."""


class UnsupportedError(Exception):
    """The process is not one that a shot knows; the words say why."""


class PythonLibrary(Noun, frozen=True, kw_only=True):
    """Addresses in the target.

    ``runtime`` is where the interpreter's state lies, the GIL in it: first address and size; ``evaluation`` runs Python code.
    """

    ensure: int
    run: int
    release: int
    runtime: tuple[int, int]
    evaluation: Symbol
    minor: int


def find_library(mappings: tuple[Mapping, ...], read: Read) -> PythonLibrary:
    """The process's CPython.

    Args:
        mappings: its memory map.
        read: reads its memory.

    Raises:
        UnsupportedError: if it has none, or one of which nobody has tried what a shot does.
        ParseError: if its memory is not what the map says.
    """
    for mapping in find_candidates(mappings):
        symbols = find_symbols(read, mapping.start, _NEEDED)
        if len(symbols) == len(_NEEDED):
            runtime = symbols["_PyRuntime"]
            return PythonLibrary(
                ensure=symbols["PyGILState_Ensure"].start,
                run=symbols["PyRun_SimpleStringFlags"].start,
                release=symbols["PyGILState_Release"].start,
                runtime=(runtime.start, runtime.size),
                evaluation=symbols[EVALUATION],
                minor=_minor(mapping.path),
            )
    raise UnsupportedError("it is no CPython, or one that hides its functions")


def find_candidates(mappings: tuple[Mapping, ...]) -> tuple[Mapping, ...]:
    """The first mapping of every file that may be the interpreter."""
    first = (mapping for mapping in mappings if mapping.offset == 0 and _CANDIDATE.search(mapping.path))
    return tuple({mapping.path: mapping for mapping in first}.values())


def is_running(library: PythonLibrary, read: Read) -> bool:
    """Whether the interpreter is up, and does not end: one that ends kills the threads that ask for its lock."""
    initialized_at, finalizing_at = _STATE_AT[library.minor]
    state = read(library.runtime[0], finalizing_at + 8)
    if len(state) < finalizing_at + 8:
        return False
    initialized, finalizing = struct.unpack_from("<i", state, initialized_at), struct.unpack_from("<Q", state, finalizing_at)
    return initialized == (1,) and finalizing == (0,)


def _minor(path: str) -> int:
    found = _CANDIDATE.search(path)
    digits, flags = (found[1] or found[3], found[2] or found[4]) if found else (None, None)
    if digits is None or int(digits) not in _STATE_AT or flags:
        told = f"Python 3.{digits}{flags or ''}" if digits else "its Python"
        raise UnsupportedError(f"{told} is none of those that attaching was tried on: 3.10 to 3.13, with an interpreter lock")
    return int(digits)
