"""What must be known of a process before a shot: its memory map, CPython's functions in it, and the way back from a signal.

Cost to the process: none, its memory is read, some 2 MiB of it: 10 ms.
"""

from pathlib import Path

from pardbg.collectors.attach.address_space import Mapping, parse_maps
from pardbg.collectors.attach.c_library import CLibrary, find_c_library
from pardbg.collectors.attach.chain import SPARE_BYTES, Functions
from pardbg.collectors.attach.parking import Surroundings
from pardbg.collectors.attach.python_library import PythonLibrary, find_library
from pardbg.collectors.attach.symbols import Read, Symbol, find_symbols
from pardbg.collectors.attach.thread_kind import TORCH_LOOPS
from pardbg.watchdog.model.base import Noun

_LEVEL = "FLAGS_caffe2_log_level"
_LEVELS_LIBRARY = "/libc10.so"
_LOOPS_LIBRARY = "/libtorch_cpu.so"


class Prepared(Noun, frozen=True, kw_only=True):
    """A process that can be shot at.

    ``log_level`` is where torch's C++ code keeps how much it says, 0 if that is not known. ``loops``: see `thread_kind`.
    """

    functions: Functions
    around: Surroundings
    python: PythonLibrary
    c_library: CLibrary
    log_level: int
    loops: tuple[Symbol, ...] = ()


def prepare(pid: int, read: Read, proc: Path = Path("/proc")) -> Prepared:
    """Reads all that a shot needs.

    Args:
        pid: the process.
        read: reads its memory.
        proc: where `/proc` is.

    Raises:
        UnsupportedError: if it is not CPython, or its C library is not known.
        OSError: if it may not be read, or has ended.
        ParseError: if what is read is damaged.
    """
    mappings = parse_maps((proc / str(pid) / "maps").read_text(errors="replace"))
    python = find_library(mappings, read)
    c_library = find_c_library(mappings, read)
    return Prepared(
        functions=Functions(
            ensure=python.ensure,
            run=python.run,
            release=python.release,
            restorer=c_library.restorers[0],
            keeper=c_library.keeper,
            copier=c_library.copier,
        ),
        around=Surroundings(mappings=mappings, runtime=python.runtime, spare_bytes=SPARE_BYTES),
        python=python,
        c_library=c_library,
        log_level=_find_log_level(mappings, read),
        loops=_find_loops(mappings, read),
    )


def _find_log_level(mappings: tuple[Mapping, ...], read: Read) -> int:
    found = _find_in(_LEVELS_LIBRARY, (_LEVEL,), mappings, read).get(_LEVEL)
    return found.start if found and found.size == 4 else 0


def _find_loops(mappings: tuple[Mapping, ...], read: Read) -> tuple[Symbol, ...]:
    return tuple(_find_in(_LOOPS_LIBRARY, TORCH_LOOPS, mappings, read).values())


def _find_in(name: str, symbols: tuple[str, ...], mappings: tuple[Mapping, ...], read: Read) -> dict[str, Symbol]:
    library = next((one for one in mappings if one.offset == 0 and one.path.endswith(name)), None)
    return find_symbols(read, library.start, symbols) if library else {}
