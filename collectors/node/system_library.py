"""The system calls that Python has no function for: reading another process's memory, ptrace, the kernel's log and clock.

Used on processes of our own only, in the trying child. An error comes back as its name, ``EPERM``; empty is success.
"""

import ctypes
import errno
import os
import time

_SEIZE, _INTERRUPT, _DETACH = 0x4206, 0x4207, 17
_EVERY_CHILD = 0x40000000  # __WALL: also who is no child of ours, only traced
_STOP_WITHIN_S = 0.5
_LOG_SIZE = 10
_UNSYNCHRONISED = 0x40

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.restype = ctypes.c_long
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_libc.process_vm_readv.restype = ctypes.c_ssize_t


class _Part(ctypes.Structure):
    _fields_ = [("address", ctypes.c_void_p), ("size", ctypes.c_size_t)]


class _Clock(ctypes.Structure):
    """``struct timex`` as far as it is needed, and room for the rest."""

    _fields_ = [
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("frequency", ctypes.c_long),
        ("largest_error_us", ctypes.c_long),
        ("estimated_error_us", ctypes.c_long),
        ("status", ctypes.c_int),
        ("rest", ctypes.c_long * 40),
    ]


def read_byte(pid: int, address: int) -> str:
    """Reads one byte by ``process_vm_readv``."""
    byte = ctypes.create_string_buffer(1)
    here, there = _Part(ctypes.addressof(byte), 1), _Part(address, 1)
    count = _libc.process_vm_readv(
        ctypes.c_int(pid),
        ctypes.byref(here),
        ctypes.c_ulong(1),
        ctypes.byref(there),
        ctypes.c_ulong(1),
        ctypes.c_ulong(0),
    )
    return "" if count == 1 else _last_error()


def hold_and_let_go(pid: int) -> str:
    """Seizes a process of our own, stops it and lets it go. If we die meanwhile the kernel lets it go."""
    for request in (_SEIZE, _INTERRUPT):
        if _libc.ptrace(request, pid, None, None) == -1:
            return _last_error()
    give_up_at_s = time.monotonic() + _STOP_WITHIN_S
    while os.waitpid(pid, os.WNOHANG | _EVERY_CHILD)[0] == 0:
        if time.monotonic() > give_up_at_s:
            return "ETIMEDOUT"
        time.sleep(0.001)
    return "" if _libc.ptrace(_DETACH, pid, None, None) == 0 else _last_error()


def ask_log_size() -> str:
    """Asks ``syslog(2)`` for the size of the kernel's log, which needs what reading needs."""
    return "" if _libc.klogctl(_LOG_SIZE, None, 0) >= 0 else _last_error()


def read_clock() -> tuple[bool, float] | None:
    """Whether the kernel holds its clock for synchronised, and its largest error in seconds. None: it may not be asked."""
    clock = _Clock()  # modes 0: changes nothing
    if _libc.adjtimex(ctypes.byref(clock)) < 0:
        return None
    return not clock.status & _UNSYNCHRONISED, clock.largest_error_us / 1e6


def _last_error() -> str:
    return errno.errorcode.get(ctypes.get_errno(), "EUNKNOWN")
