"""``/proc/PID/syscall``: the call a thread is in, by name, with its arguments."""

import os

from pardbg.watchdog.errors import ParseError
from pardbg.watchdog.model.base import Noun

RUNNING = "running"
PAGE_FAULT = "page fault"

_X86_64 = (
    "0 read, 1 write, 2 open, 3 close, 4 stat, 5 fstat, 6 lstat, 7 poll, 8 lseek, 9 mmap, 11 munmap, 16 ioctl, 17 pread64,"
    "18 pwrite64, 19 readv, 20 writev, 21 access, 23 select, 24 sched_yield, 26 msync, 28 madvise, 34 pause, 35 nanosleep,"
    "40 sendfile, 42 connect, 43 accept, 44 sendto, 45 recvfrom, 46 sendmsg, 47 recvmsg, 56 clone, 57 fork, 58 vfork,"
    "59 execve, 60 exit, 61 wait4, 65 semop, 69 msgsnd, 70 msgrcv, 72 fcntl, 73 flock, 74 fsync, 75 fdatasync, 76 truncate,"
    "77 ftruncate, 78 getdents, 79 getcwd, 80 chdir, 82 rename, 83 mkdir, 84 rmdir, 85 creat, 86 link, 87 unlink,"
    "88 symlink, 89 readlink, 90 chmod, 92 chown, 128 rt_sigtimedwait, 130 rt_sigsuspend, 132 utime, 137 statfs,"
    "138 fstatfs, 162 sync, 165 mount, 166 umount2, 191 getxattr, 202 futex, 208 io_getevents, 217 getdents64,"
    "219 restart_syscall, 220 semtimedop, 230 clock_nanosleep, 231 exit_group, 232 epoll_wait, 247 waitid, 257 openat,"
    "258 mkdirat, 262 newfstatat, 263 unlinkat, 264 renameat, 265 linkat, 266 symlinkat, 267 readlinkat, 269 faccessat,"
    "270 pselect6, 271 ppoll, 275 splice, 277 sync_file_range, 280 utimensat, 281 epoll_pwait, 285 fallocate, 288 accept4,"
    "295 preadv, 296 pwritev, 299 recvmmsg, 306 syncfs, 307 sendmmsg, 310 process_vm_readv, 316 renameat2, 322 execveat,"
    "326 copy_file_range, 327 preadv2, 328 pwritev2, 332 statx, 333 io_pgetevents, 426 io_uring_enter, 435 clone3,"
    "437 openat2, 439 faccessat2, 441 epoll_pwait2, 449 futex_waitv, 455 futex_wait"
)
_AARCH64 = (
    "4 io_getevents, 8 getxattr, 17 getcwd, 22 epoll_pwait, 25 fcntl, 29 ioctl, 32 flock, 34 mkdirat, 35 unlinkat,"
    "36 symlinkat, 37 linkat, 38 renameat, 39 umount2, 40 mount, 43 statfs, 44 fstatfs, 45 truncate, 46 ftruncate,"
    "47 fallocate, 48 faccessat, 49 chdir, 56 openat, 57 close, 61 getdents64, 62 lseek, 63 read, 64 write, 65 readv,"
    "66 writev, 67 pread64, 68 pwrite64, 69 preadv, 70 pwritev, 71 sendfile, 72 pselect6, 73 ppoll, 76 splice,"
    "78 readlinkat, 79 newfstatat, 80 fstat, 81 sync, 82 fsync, 83 fdatasync, 84 sync_file_range, 88 utimensat, 93 exit,"
    "94 exit_group, 95 waitid, 98 futex, 101 nanosleep, 115 clock_nanosleep, 124 sched_yield, 128 restart_syscall,"
    "133 rt_sigsuspend, 137 rt_sigtimedwait, 188 msgrcv, 189 msgsnd, 192 semtimedop, 193 semop, 202 accept, 203 connect,"
    "206 sendto, 207 recvfrom, 211 sendmsg, 212 recvmsg, 215 munmap, 220 clone, 221 execve, 222 mmap, 227 msync,"
    "233 madvise, 242 accept4, 243 recvmmsg, 260 wait4, 267 syncfs, 269 sendmmsg, 270 process_vm_readv, 276 renameat2,"
    "281 execveat, 285 copy_file_range, 286 preadv2, 287 pwritev2, 291 statx, 292 io_pgetevents, 426 io_uring_enter,"
    "435 clone3, 437 openat2, 439 faccessat2, 441 epoll_pwait2, 449 futex_waitv, 455 futex_wait"
)


def _read_table(text: str) -> dict[int, str]:
    return {int(number): name for number, name in (item.split() for item in text.split(","))}


CALLS = {"x86_64": _read_table(_X86_64), "aarch64": _read_table(_AARCH64)}
"""By machine (``uname -m``): the calls in which a thread can sleep."""

_DESCRIPTOR_CALLS = """
read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 recvfrom recvmsg recvmmsg sendto sendmsg sendmmsg
accept accept4 connect flock fcntl fsync fdatasync syncfs ioctl getdents getdents64 lseek fstat fstatfs ftruncate fallocate
sendfile splice sync_file_range copy_file_range epoll_wait epoll_pwait epoll_pwait2 io_uring_enter close
"""
DESCRIPTOR_CALLS = frozenset(_DESCRIPTOR_CALLS.split())
"""The calls whose first argument is the descriptor they may sleep on."""


class SystemCall(Noun, frozen=True, kw_only=True):
    """A call and its six arguments; no arguments where the thread is in no call."""

    name: str
    arguments: tuple[int, ...] = ()


def parse_system_call(text: str, state: str, machine: str | None = None) -> SystemCall:
    """Reads the line of ``/proc/PID/syscall``.

    Args:
        text: "running", or a number (-1: in no call) with arguments, stack pointer and program counter.
        state: of the same thread, as in ``/proc/PID/stat``: one that sleeps outside a call waits for a page of memory.
        machine: as ``uname -m`` prints it; default: this one.

    Raises:
        ParseError: if it is no such line.
    """
    fields = text.split()
    if fields == [RUNNING]:
        return SystemCall(name=RUNNING)
    try:
        number = int(fields[0])
        arguments = tuple(int(field, 16) for field in fields[1:7])
    except (ValueError, IndexError) as error:
        raise ParseError(f"not a line of /proc/PID/syscall: {text[:80]!r}") from error
    if number < 0:
        return SystemCall(name=PAGE_FAULT if state in {"D", "S"} else RUNNING)
    names = CALLS.get(machine or os.uname().machine, {})
    return SystemCall(name=names.get(number, f"call {number}"), arguments=arguments)
