"""Opens files of a process in another mount namespace: below its root, by `openat2`, and never out of it.

A path is walked as the process itself would walk it: absolute links and ``..`` end at its root, and links of the kernel
(``/proc/self/root``, ``/proc/self/fd/N``) are refused. Mounts are crossed: its `/dev/shm` is one. What comes back is a handle
(`O_PATH`), which opens nothing; whoever has looked at it opens it through ``/proc/self/fd``.

Cost: 50 microseconds a file. Deadline: none, a file system of the process's own (FUSE, a dead mount) may keep the caller for
ever: runs in a child that may be abandoned. Privilege: that of reading its memory map. Leaves nothing behind.
"""

import ctypes
import errno
import os
import struct

from pardbg.collectors.procfs.stat import parse_stat
from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.base import Noun

_OPENAT2 = 437  # on every architecture
_HOW = struct.Struct("QQQ")
_RESOLVE = 0x10 | 0x02  # RESOLVE_IN_ROOT, RESOLVE_NO_MAGICLINKS
_TRIES = 16  # a rename beside a ".." makes the kernel give up a walk
_STAT_BYTES = 4096
_MEMORY = frozenset({0x01021994, 0x858458F6})  # tmpfs, ramfs
_KERNELS = frozenset(
    (
        *(0x9FA0, 0x62656572, 0x27E0EB, 0x63677270, 0x64626720, 0x74726163),  # proc, sys, cgroup, cgroup2, debug, trace
        *(0x73636673, 0x62656570, 0xCAFE4A11, 0xDE5E81E4, 0x6165676C),  # security, config, bpf, efivar, pstore
        *(0x42494E4D, 0x65735543, 0x19800202, 0xF97CFF8C, 0x43415D53),  # binfmt_misc, fusectl, mqueue, SELinux, Smack
        *(0x5A3C69F0, 0x6E736673, 0x50494446, 0x7655821, 0x1CD1, 0x6C6F6F70),  # AppArmor, ns, pidfd, resctrl, devpts, binder
    )
)
_libc = ctypes.CDLL(None, use_errno=True)


class RankRoot(Noun, frozen=True, kw_only=True):
    """The process at whose root a path begins, by its number here and its start in clock ticks since boot."""

    pid: int
    started_ticks: int


class NoOpenat2Error(OSError):
    """The kernel, or a filter around us, has no `openat2`."""


def open_root(whose: RankRoot) -> int:
    """A handle of the root folder that a process has now.

    Raises:
        ProcessLookupError: if it has ended.
        PermissionError: if we may not look into it.
        NoOpenat2Error: if nothing could be opened below it.
    """
    try:
        folder = os.open(f"/proc/{whose.pid}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            if _started_ticks(folder) != whose.started_ticks:
                raise ProcessLookupError(whose.pid)
            root = os.open("root", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        finally:
            os.close(folder)
    except FileNotFoundError as error:
        raise ProcessLookupError(whose.pid) from error
    try:
        os.close(open_inside(root, b"."))
    except BaseException:
        os.close(root)
        raise
    return root


def open_inside(root: int, path: bytes, *, follow: bool = False) -> int:
    """A handle of a file, by its name below a root.

    Args:
        root: from `open_root`.
        path: absolute, or relative to the root.
        follow: the file itself may be a link; its folder may be reached through links in any case.

    Raises:
        ValueError: if it is no path.
        OSError: if the kernel says so, and what is no file for anybody: a link of the kernel gives ``ELOOP``.
    """
    if b"\0" in path:
        raise ValueError("a path with a NUL in it")
    flags = os.O_PATH | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    how = _HOW.pack(flags, 0, _RESOLVE)
    number = 0
    for _ in range(_TRIES):
        descriptor: int = _libc.syscall(
            ctypes.c_long(_OPENAT2), ctypes.c_int(root), ctypes.c_char_p(path), ctypes.c_char_p(how), ctypes.c_size_t(len(how))
        )
        if descriptor >= 0:
            return descriptor
        number = ctypes.get_errno()
        if number not in {errno.EAGAIN, errno.EINTR}:
            break
    kind = NoOpenat2Error if number in {errno.ENOSYS, errno.EPERM} else OSError
    raise kind(number, os.strerror(number))


def is_of_kernel(handle: int) -> bool:
    """Whether a file is one of the kernel's own, which may change something by being read."""
    return _file_system(handle) in _KERNELS


def is_in_memory(handle: int) -> bool:
    """Whether a file lies in memory, so that reading it never blocks."""
    return _file_system(handle) in _MEMORY


def name_inside(pid: int, path: bytes) -> bytes:
    """What a process itself calls a file that ``/proc`` shows us under this name: it may have changed its root."""
    root = os.readlink(b"/proc/%d/root" % pid).rstrip(b"/")  # noqa: PTH115 - bytes
    return path[len(root) :] or b"/" if path == root or path.startswith(root + b"/") else path


def _started_ticks(folder: int) -> int | None:
    descriptor = os.open("stat", os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
    try:
        return parse_stat(os.read(descriptor, _STAT_BYTES).decode(errors="replace")).started_ticks
    except ParseError:
        return None
    finally:
        os.close(descriptor)


def _file_system(handle: int) -> int:
    """The magic number of its type."""
    status = (ctypes.c_long * 64)()
    if _libc.fstatfs(ctypes.c_int(handle), ctypes.byref(status)):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return status[0] & 0xFFFFFFFF
