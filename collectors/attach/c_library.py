"""What a shot needs of the C library in a process: the way back from a signal, three instructions, and where errno is. Pure."""

import struct
from collections.abc import Iterator

from pardbg.collectors.attach.address_space import Mapping
from pardbg.collectors.attach.python_library import UnsupportedError
from pardbg.collectors.attach.symbols import Read, find_symbols
from pardbg.watchdog.model.base import Noun

_RESTORER = bytes.fromhex("48c7c00f0000000f05")  # mov rax, 15; syscall
_KEEPER = bytes.fromhex("89035bc3")  # mov [rbx], eax; pop rbx; ret
_ERRNO_AT = (bytes.fromhex("488b05"), bytes.fromhex("64480304 25000000 00c3"))
_FILES = ("/libc.so", "/libc-", "/libpthread")
_MOST_BYTES = 512 * 1024**2


class CLibrary(Noun, frozen=True, kw_only=True):
    """Addresses in the target.

    Attributes:
        restorers: of the code that returns from a signal; an address of these on a stack is a signal's, or a shot's.
        keeper: of ``mov [rbx], eax; pop rbx; ret``, which keeps the result of a function.
        copier: of `swab`, which copies bytes in pairs, turned round.
        errno_offset: from a thread's own pointer to its errno. None, and ``copier`` 0: errno is left as the code leaves it.
    """

    restorers: tuple[int, ...]
    keeper: int
    copier: int = 0
    errno_offset: int | None = None


def find_c_library(mappings: tuple[Mapping, ...], read: Read) -> CLibrary:
    """The process's C library.

    Raises:
        UnsupportedError: if it is not the one of GNU, or has been built otherwise than all that are known.
        ParseError: if its memory is not what the map says.
    """
    own = [mapping for mapping in mappings if any(part in mapping.path for part in _FILES)]
    restorers = tuple(place for mapping in own for place in _places(mapping, read, _RESTORER))
    if not restorers:
        raise UnsupportedError("its C library is not one that is known")
    others = [mapping for mapping in mappings if mapping not in own and mapping.path.startswith("/")]
    keeper = next((place for mapping in (*own, *others) for place in _places(mapping, read, _KEEPER)), 0)
    if not keeper:
        raise UnsupportedError("its code has no place that keeps a result")
    for mapping in own:
        symbols = find_symbols(read, mapping.start, ("__errno_location", "swab")) if mapping.offset == 0 else {}
        offset = _errno_offset(symbols["__errno_location"].start, read) if len(symbols) == 2 else None
        if offset is not None:
            return CLibrary(restorers=restorers, keeper=keeper, copier=symbols["swab"].start, errno_offset=offset)
    return CLibrary(restorers=restorers, keeper=keeper)


def _places(mapping: Mapping, read: Read, code: bytes) -> Iterator[int]:
    if "x" not in mapping.permissions or mapping.end - mapping.start > _MOST_BYTES:
        return
    text = read(mapping.start, mapping.end - mapping.start)
    at = text.find(code)
    while at >= 0:
        yield mapping.start + at
        at = text.find(code, at + 1)


def _errno_offset(function: int, read: Read) -> int | None:
    """From the code of `__errno_location`: it adds the thread's pointer to a number that the linker has put somewhere."""
    code = read(function, 21).removeprefix(bytes.fromhex("f30f1efa"))
    skipped = 21 - len(code)
    before, after = _ERRNO_AT
    if not code.startswith(before) or code[7:17] != after:
        return None
    (relative,) = struct.unpack_from("<i", code, 3)
    slot = read(function + skipped + 7 + relative, 8)
    return struct.unpack("<q", slot)[0] if len(slot) == 8 else None
