"""Which thread may be borrowed, judged from two looks and the memory map."""

import pytest

from pardbg.collectors.attach.address_space import Mapping, find_mapping, parse_maps
from pardbg.collectors.attach.parking import Surroundings, ThreadLook, is_limited, merit, why_not, why_not_file
from pardbg.watchdog.errors import ParseError

MAPS = """\
560000000000-560000001000 r-xp 00000000 fe:00 10 /usr/bin/python3.11
560000002000-560000003000 rw-p 00000000 00:00 0 [heap]
7f0000000000-7f0000100000 rw-p 00000000 00:00 0
7f1000000000-7f1000001000 rw-p 00010000 fe:00 11 /usr/lib/x86_64-linux-gnu/libc.so.6
7f1000001000-7f1000004000 rw-p 00000000 00:00 0
7f2000000000-7f2000001000 rw-p 00010000 fe:00 12 /lib64/ld-linux-x86-64.so.2
7f3000000000-7f3000100000 rw-p 00010000 fe:00 13 /opt/lib/libpython3.11.so.1.0
7f4000000000-7f4000800000 rw-p 00000000 00:00 0
7f5000000000-7f5000040000 rw-p 00000000 00:00 0
7f6000000000-7f6000001000 rw-p 00000000 fe:00 14 /opt/lib/libjemalloc.so.2
7f7000000000-7f7000001000 r--p 00000000 00:00 0 [vvar name with spaces]
"""
STACK = 0x7F4000700000
AROUND = Surroundings(mappings=parse_maps(MAPS), runtime=(0x7F3000001000, 0x28000), spare_bytes=512 * 1024)
WAIT, WAIT_BITSET, LOCK_PI, REQUEUE_PI, PRIVATE, REALTIME = 0, 9, 6, 11, 128, 256


def look(call: str, *arguments: int, stack: int = STACK, **others: object) -> ThreadLook:
    return ThreadLook(tid=7, call=call, arguments=(*arguments, 0, 0, 0, 0, 0, 0)[:6], stack=stack, program=1, **others)  # type: ignore[arg-type]


def judged(one: ThreadLook) -> str:
    return why_not(one, one, AROUND)


def test_map_is_read_with_names_that_hold_spaces_and_without_any() -> None:
    first, last = AROUND.mappings[0], AROUND.mappings[-1]
    assert first == Mapping(start=0x560000000000, end=0x560000001000, permissions="r-xp", offset=0, path="/usr/bin/python3.11")
    assert last.path == "[vvar name with spaces]"
    assert find_mapping(AROUND.mappings, 0x7F0000000001) == AROUND.mappings[2]
    assert find_mapping(AROUND.mappings, 0x560000001000) is None


@pytest.mark.parametrize("text", ["nonsense", "1-2", "xyz-1 rw-p 0 0 0"])
def test_what_is_no_map_is_an_error(text: str) -> None:
    with pytest.raises(ParseError):
        parse_maps(text)


@pytest.mark.parametrize(
    "one",
    [
        look("poll", 0, 0, 1000),
        look("epoll_wait", 3, 1, 8, 0xFFFFFFFF),
        look("recvfrom", 3, 1, 8, 0),
        look("recvmsg", 3, 1, 0x40),
        look("clock_nanosleep", 1, 1, 5),
        look("futex", 0x7F0000001000, WAIT_BITSET | PRIVATE, 2),
        look("futex", 0x7F0000001000, WAIT | PRIVATE, 0),
        look("futex", 0x560000002100, WAIT_BITSET | PRIVATE | REALTIME, 0),
        look("futex", 0x7F0000001000, WAIT | PRIVATE, 2, 0x7F4000700100),
    ],
)
def test_parked_thread_may_be_borrowed(one: ThreadLook) -> None:
    assert judged(one) == ""


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (look("running"), "it moves"),
        (look("write", 1, 2, 3), "it is in write, which may not be entered twice"),
        (look("restart_syscall"), "it is in restart_syscall, which may not be entered twice"),
        (look("recvmmsg", 3), "it is in recvmmsg, which may not be entered twice"),
        (look("recvfrom", 3, 1, 8, 0x100), "it is in recvfrom until all has come, which would end early"),
        (look("recvmsg", 3, 1, 0x140), "it is in recvmsg until all has come, which would end early"),
        (look("clock_nanosleep", 2, 0, 5), "it waits by a clock of processor time"),
        (look("read", 3, state="D"), "it is in an uninterruptible call"),
        (look("futex", 0x7F3000001000, WAIT_BITSET), "it waits for the interpreter lock"),
        (look("futex", 0x7F3000028FFF, WAIT), "it waits for the interpreter lock"),
        (look("futex", 0x7F1000000100, WAIT), "it waits for a lock of the C library or of the dynamic linker"),
        (look("futex", 0x7F1000001100, WAIT), "it waits for a lock of the C library or of the dynamic linker"),
        (look("futex", 0x7F2000000100, WAIT), "it waits for a lock of the C library or of the dynamic linker"),
        (look("futex", 0x7F6000000100, WAIT), "it waits for a lock of the C library or of the dynamic linker"),
        (look("futex", 0x7F0000000030, WAIT), "it waits for a lock of the memory allocator"),
        (look("futex", 0x7F0000001000, WAIT | PRIVATE, 2), "it waits for a mutex"),
        (look("futex", 0x7F0000001000, LOCK_PI), "it waits for a lock that the kernel hands on"),
        (look("futex", 0x7F0000001000, REQUEUE_PI | REALTIME), "it waits for a lock that the kernel hands on"),
        (look("futex", 0x5000, WAIT), "what it waits for was not found"),
        (look("poll", stack=0x1000), "its stack was not found"),
        (look("poll", stack=0x7F7000000100), "its stack was not found"),
        (look("poll", stack=0x7F5000040000 - 8), "its stack has 255 KiB left, and a shot may need 512"),
    ],
)
def test_thread_that_may_hold_what_a_shot_needs_is_refused(one: ThreadLook, why: str) -> None:
    assert judged(one) == why


def test_thread_that_was_awake_between_the_looks_moves() -> None:
    assert why_not(look("poll", 1, switches=4), look("poll", 1, switches=5), AROUND) == "it moves"
    assert why_not(look("poll", 1), look("poll", 2), AROUND) == "it moves"


def test_futex_of_the_arena_is_refused_only_where_the_lock_lies() -> None:
    assert judged(look("futex", 0x7F0000000100, WAIT_BITSET)) == ""


def test_calls_that_a_stop_would_not_be_seen_in_are_borrowed_first() -> None:
    looks = [
        look("epoll_wait", 3, 0, 0, 0xFFFFFFFF),
        look("read", 3),
        look("poll", 0, 0, 5),
        look("futex", 0x7F0000001000, WAIT_BITSET),
    ]
    assert [one.call for one in sorted(looks, key=merit)] == ["futex", "poll", "read", "epoll_wait"]


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (look("poll", 0, 0, 0xFFFFFFFF), False),
        (look("poll", 0, 0, 1), True),
        (look("epoll_pwait", 0, 0, 0, 1), True),
        (look("futex", 1, WAIT, 0, 5), True),
        (look("futex", 1, WAIT_BITSET, 0, 5), False),
        (look("nanosleep", 1), True),
        (look("select", 0, 0, 0, 0, 1), True),
        (look("select"), False),
        (look("accept"), False),
    ],
)
def test_limited_calls_are_told_from_others(one: ThreadLook, expected: bool) -> None:  # noqa: FBT001
    assert is_limited(one) is expected


def test_reading_from_a_pipe_may_be_interrupted_and_from_a_file_not() -> None:
    assert [why_not_file(link) for link in ("pipe:[1]", "socket:[2]", "anon_inode:[eventfd]")] == [""] * 3
    assert why_not_file("/mnt/fuse/data") == "it reads a file"
