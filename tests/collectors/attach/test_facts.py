"""What is read of a process before a shot: its state, its libraries in memory, its stacks, its waiting times. Pure."""

import os
import struct
import sys
from pathlib import Path

import pytest

from pardbg.collectors.attach.address_space import Mapping, parse_maps
from pardbg.collectors.attach.c_library import find_c_library
from pardbg.collectors.attach.eligibility import why_not_process, why_not_thread
from pardbg.collectors.attach.loader_lock import is_held, linker_data
from pardbg.collectors.attach.memory import opened
from pardbg.collectors.attach.python_library import UnsupportedError, find_candidates, find_library, is_running
from pardbg.collectors.attach.stack_bounds import holds_any, stack_bottom
from pardbg.collectors.attach.symbols import find_symbols
from pardbg.collectors.attach.thread_status import ThreadStatus, parse_thread_status
from pardbg.collectors.attach.waiting_time import Again, shorten
from pardbg.watchdog.errors import ParseError

STATUS = """\
Name:	python
State:	S (sleeping)
Pid:	77
TracerPid:	0
NSpid:	77	5
SigPnd:	0000000000000000
ShdPnd:	0000000000000200
SigBlk:	0000000000000200
Seccomp:	2
CoreDumping:	0
x86_Thread_features:	@
voluntary_ctxt_switches:	12
nonvoluntary_ctxt_switches:	3
""".replace("@", "")
MS = 1_000_000


def test_usual_process_may_be_attached_to() -> None:
    assert why_not_process(STATUS, "x86_64") == ""


@pytest.mark.parametrize(
    ("line", "changed", "why"),
    [
        ("State:	S (sleeping)", "State:	T (stopped)", "it is stopped"),
        ("State:	S (sleeping)", "State:	t (tracing stop)", "it is stopped"),
        ("State:	S (sleeping)", "State:	D (disk sleep)", "it is in an uninterruptible call"),
        ("State:	S (sleeping)", "State:	Z (zombie)", "it has ended"),
        ("TracerPid:	0", "TracerPid:	41", "process 41 traces it"),
        ("Seccomp:	2", "Seccomp:	1", "its system calls are filtered in strict mode"),
        ("CoreDumping:	0", "CoreDumping:	1", "its memory is being dumped"),
        ("features:	", "features:	shstk wrss ", "its return addresses are guarded by a shadow stack"),
    ],
)
def test_process_that_cannot_take_it_is_refused(line: str, changed: str, why: str) -> None:
    assert why_not_process(STATUS.replace(line, changed), "x86_64") == why


def test_other_machines_are_refused() -> None:
    assert "this is aarch64" in why_not_process(STATUS, "aarch64")


def test_thread_in_an_uninterruptible_call_does_not_spare_the_others_but_a_traced_one_does() -> None:
    assert why_not_thread(STATUS.replace("State:	S", "State:	D")) == ""
    assert why_not_thread(STATUS.replace("TracerPid:	0", "TracerPid:	9")) == "process 9 traces it"


def test_status_of_a_thread_is_read() -> None:
    assert parse_thread_status(STATUS) == ThreadStatus(state="S", switches=12, has_signal=False, inner_tid=5)
    assert parse_thread_status(STATUS.replace("SigBlk:	0000000000000200", "SigBlk:	0000000000000000")).has_signal
    with pytest.raises(ParseError):
        parse_thread_status("Name:	x\n")


def test_this_interpreter_is_found_in_memory_and_runs() -> None:
    mappings = parse_maps(Path("/proc/self/maps").read_text())
    with opened(os.getpid()) as memory:
        library = find_library(mappings, memory.read)
        c_library = find_c_library(mappings, memory.read)
        assert library.minor == sys.version_info.minor
        assert is_running(library, memory.read)
        assert memory.read(c_library.restorers[0], 9) == bytes.fromhex("48c7c00f0000000f05")
        assert memory.read(c_library.keeper, 5)[-5:] == bytes.fromhex("89035bc3") + memory.read(c_library.keeper + 4, 1)
        assert c_library.copier
        assert c_library.errno_offset is not None
        assert c_library.errno_offset < 0


@pytest.mark.parametrize(
    ("path", "is_one"),
    [
        ("/usr/bin/python3.12", True),
        ("/opt/lib/libpython3.10.so.1.0", True),
        ("/opt/lib/libpython3.10.so.1.0 (deleted)", True),
        ("/usr/bin/python3", True),
        ("/usr/lib/python3.11/lib-dynload/_json.cpython-311-x86_64-linux-gnu.so", False),
        ("/usr/bin/bash", False),
    ],
)
def test_interpreters_are_known_by_the_names_of_their_files(path: str, is_one: bool) -> None:  # noqa: FBT001
    mapping = Mapping(start=0, end=4096, permissions="r--p", path=path)
    assert bool(find_candidates((mapping,))) is is_one


@pytest.mark.parametrize("path", ["/a/python3.9", "/a/python3.14", "/a/python3.13t", "/a/python3"])
def test_versions_that_nobody_has_tried_are_refused(path: str) -> None:
    start, own = _own_interpreter()
    with opened(os.getpid()) as memory, pytest.raises(UnsupportedError, match=r"none of those"):
        find_library((Mapping(start=start, end=own, permissions="r--p", path=path),), memory.read)


def test_library_without_the_functions_is_no_interpreter() -> None:
    mappings = parse_maps(Path("/proc/self/maps").read_text())
    libc = next(mapping for mapping in mappings if "/libc.so" in mapping.path)
    with opened(os.getpid()) as memory, pytest.raises(UnsupportedError, match=r"no CPython"):
        find_library((Mapping(start=libc.start, end=libc.end, permissions="r--p", path="/a/python3.11"),), memory.read)


def _own_interpreter() -> tuple[int, int]:
    mappings = parse_maps(Path("/proc/self/maps").read_text())
    with opened(os.getpid()) as memory:
        for mapping in find_candidates(mappings):
            if find_symbols(memory.read, mapping.start, ("PyGILState_Ensure",)):
                return mapping.start, mapping.end
    raise AssertionError


@pytest.mark.parametrize("data", [b"", b"\x7fELF\x02\x01", b"\x7fELF\x01\x01" + bytes(60), bytes(64)])
def test_memory_that_holds_no_library_is_an_error(data: bytes) -> None:
    with pytest.raises(ParseError):
        find_symbols(lambda address, count: data[address : address + count], 0, ("exit",))


def test_hostile_library_ends_the_search() -> None:
    """Its table of hashes is full of one hash that never ends."""
    head = bytearray(b"\x7fELF\x02\x01" + bytes(58))
    struct.pack_into("<Q", head, 32, 64)
    struct.pack_into("<H", head, 56, 2)
    headers = struct.pack("<IIQQQQQQ", 1, 0, 0, 0, 0, 0, 0, 0) + struct.pack("<IIQQQQQQ", 2, 0, 0, 0x400, 0, 64, 64, 0)
    dynamic = struct.pack("<qQqQqQqQ", 5, 0x1000, 6, 0x2000, 0x6FFFFEF5, 0x3000, 0, 0)
    first = bytes(head) + headers + bytes(0x400 - 64 - len(headers)) + dynamic

    def read(address: int, count: int) -> bytes:
        if address < 0x1000:
            return first[address : address + count]
        return (struct.pack("<I", 2) * (count // 4 + 1))[:count]

    assert find_symbols(read, 0, ("exit",)) == {}


BLOCK, SIZE, GUARD = 0x7F0000000000, 0x800000, 0x1000
POINTER = BLOCK + SIZE - 0x900


def descriptor(*words: int) -> bytes:
    return struct.pack(f"<{len(words)}Q", *words) + b"\1\2\3"


def test_stack_ends_where_its_guard_ends() -> None:
    bounds = descriptor(0, 4096, BLOCK, SIZE, GUARD, 7)
    assert stack_bottom(bounds, POINTER, BLOCK + 0x100000) == BLOCK + GUARD


@pytest.mark.parametrize("stack_pointer", [BLOCK - 8, BLOCK + GUARD - 8, POINTER + 8, 0x100])
def test_thread_that_is_on_another_stack_has_no_bounds(stack_pointer: int) -> None:
    assert stack_bottom(descriptor(BLOCK, SIZE, GUARD), POINTER, stack_pointer) is None


def test_addresses_on_a_stack_are_found_as_whole_words_only() -> None:
    stack = struct.pack("<QQ", 1, 0x1234)
    assert holds_any(stack, (0x9999, 0x1234))
    assert not holds_any(b"\0" + stack, (0x1234,))


def test_linker_lock_is_held_if_a_thread_of_the_process_owns_it() -> None:
    data = bytes(12) + struct.pack("<IIIII", 1, 2, 5, 1, 1) + bytes(8)
    assert is_held(data, frozenset({4, 5}))
    assert not is_held(data, frozenset({4}))
    assert not is_held(data.replace(struct.pack("<IIIII", 1, 2, 5, 1, 1), struct.pack("<IIIII", 0, 0, 5, 0, 1)), frozenset({5}))


def test_linker_data_is_what_can_be_written_behind_its_file() -> None:
    text = "1000-2000 r--p 0 0:0 1 /lib64/ld-linux-x86-64.so.2\n2000-3000 rw-p 0 0:0 1 /lib64/ld-linux-x86-64.so.2\n"
    text += "3000-4000 rw-p 0 0:0 0\n4000-5000 rw-p 0 0:0 0 [stack]\n"
    assert [mapping.start for mapping in linker_data(parse_maps(text))] == [0x2000, 0x3000]


REGISTERS = dict.fromkeys(("rdi", "rsi", "rdx", "r10", "r8", "r9"), 0)


def no_time(address: int) -> tuple[int, int]:
    raise AssertionError(address)


@pytest.mark.parametrize(
    ("call", "registers", "waited_ms", "expected"),
    [
        ("poll", {"rdx": 1000}, 400, Again(registers={"rdx": 600})),
        ("poll", {"rdx": 1000}, 4000, Again(registers={"rdx": 0})),
        ("poll", {"rdx": 0xFFFFFFFF}, 400, Again()),
        ("epoll_wait", {"r10": 1000}, 400, Again(registers={"r10": 600})),
        ("epoll_pwait", {"r10": 2**64 - 1}, 400, Again()),
        ("futex", {"rsi": 0x89, "r10": 5}, 400, Again()),
        ("futex", {"rsi": 0x80, "r10": 0}, 400, Again()),
        ("clock_nanosleep", {"rsi": 1, "rdx": 5}, 400, Again()),
        ("clock_nanosleep", {"rdx": 5, "r10": 5}, 400, Again()),
        ("nanosleep", {"rdi": 5, "rsi": 5}, 400, Again()),
        ("select", {"r8": 5}, 400, Again()),
        ("read", {}, 400, Again()),
    ],
)
def test_call_is_entered_again_for_what_is_left(call: str, registers: dict[str, int], waited_ms: int, expected: Again) -> None:
    assert shorten(call, REGISTERS | registers, waited_ms * MS, no_time) == expected


@pytest.mark.parametrize(
    ("call", "registers", "pointer"),
    [
        ("futex", {"rsi": 0x80, "r10": 5}, "r10"),
        ("nanosleep", {"rdi": 5}, "rdi"),
        ("clock_nanosleep", {"rdx": 5, "r10": 9}, "rdx"),
    ],
)
def test_span_of_time_is_shortened_in_a_copy(call: str, registers: dict[str, int], pointer: str) -> None:
    again = shorten(call, REGISTERS | registers, 1_200 * MS, lambda _: (3, 100))
    assert again == Again(time=struct.pack("<qq", 1, 800_000_100), pointer=pointer)
