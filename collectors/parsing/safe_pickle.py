"""Pickles from other machines: plain data only, and whatever is whole of a truncated one.

A flight-recorder dump needs no class and no function: it is dicts, lists, tuples, strings and numbers. So any reference to a
global is refused before it is looked up, and nothing a planted file says is ever executed. The reader is the C unpickler, as
fast as the plain one.
"""

import io
import pickle
from typing import Any, NoReturn

from pardbg.watchdog.errors import ParseError

# From a reader with `peek` the C unpickler takes its opcodes in blocks; from a bare BytesIO each with a call, 3 times slower.
_BUFFER_BYTES = 64 * 1024
_LONGEST_WORDS = 200


class _PlainUnpickler(pickle.Unpickler):
    """The C unpickler with the door to globals shut. REDUCE, BUILD and INST get nothing to call without it."""

    def find_class(self, module: str, name: str, /) -> NoReturn:
        raise ParseError(
            _describe_global(module, name),
            remedy="do not open this file with pickle.load; find out who wrote it",
        )


def loads(data: bytes) -> Any:
    """Reads a pickle of plain data.

    Nothing is executed, but a planted file of a few bytes can ask for a table of many gigabytes: read the files of others in a
    process with a memory limit, as `reading_child.py` does.

    Raises:
        ParseError: for anything else: a global, a truncated or a damaged pickle.
    """
    try:
        return _PlainUnpickler(io.BufferedReader(io.BytesIO(data), _BUFFER_BYTES)).load()
    except ParseError:
        raise
    except Exception as error:  # the pickle documentation allows any exception for bad data
        raise ParseError(f"damaged pickle: {_in_one_line(error)}") from error


class _Salvager(pickle._Unpickler):  # noqa: SLF001 - the pure Python unpickler; its stacks survive a failure
    """Reads as far as the bytes go, then gives up its half-built values."""

    stack: list[Any]
    metastack: list[list[Any]]

    def find_class(self, module: str, name: str, /) -> NoReturn:
        raise ParseError(_describe_global(module, name))

    def read_stacks(self) -> list[list[Any]]:
        try:
            return [[self.load()]]
        except ParseError:
            raise
        except Exception:  # noqa: BLE001 - it is known to be damaged: what matters is what was read before
            return [*getattr(self, "metastack", []), getattr(self, "stack", [])]


def salvage(data: bytes) -> dict[str, Any]:
    """Recovers the top-level pairs and the whole entries of a truncated dump.

    Slower than `loads` (Python instead of C): for files that `loads` refused only.

    Raises:
        ParseError: if the pickle asks for a global.
    """
    stacks = _Salvager(io.BytesIO(data)).read_stacks()
    values = [value for stack in stacks for value in stack]
    found: dict[str, Any] = {}
    for value in values[:1]:
        if isinstance(value, dict):
            found.update((key, part) for key, part in value.items() if isinstance(key, str))
    pairs = stacks[1] if len(stacks) > 1 else []
    found.update((key, part) for key, part in zip(pairs[::2], pairs[1::2], strict=False) if isinstance(key, str))
    listed = found.get("entries")
    # Python's pickler fills a list in portions: some entries are in it already, the last portion is still on the stack.
    found["entries"] = [entry for entry in listed if _is_entry(entry)] if isinstance(listed, list) else []
    if not found["entries"] and isinstance(values[0] if values else None, list):
        found["entries"] = [entry for entry in values[0] if _is_entry(entry)]  # before 1.0: no dict around the list
    found["entries"] += [value for value in values if _is_entry(value)]
    return found


def _describe_global(module: str, name: str) -> str:
    return f"the pickle asks for {f'{module}.{name}'[:80]!a}: flight-recorder dumps hold plain data only"


def _in_one_line(error: Exception) -> str:
    words = " ".join(str(error).split()).encode("ascii", "backslashreplace").decode()
    return words[:_LONGEST_WORDS] or type(error).__name__


def _is_entry(value: object) -> bool:
    return isinstance(value, dict) and "profiling_name" in value
