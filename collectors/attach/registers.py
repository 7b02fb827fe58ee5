"""The registers of a thread on x86_64, as ptrace gives and takes them. Pure."""

import ctypes

_NAMES = """
r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss fs_base gs_base ds es fs gs
"""
NAMES = tuple(_NAMES.split())
Buffer = ctypes.c_ulonglong * len(NAMES)
SYSCALL_BYTES = 2
"""Length of the instruction that enters the kernel: going back by it enters again."""

Registers = dict[str, int]


def read_registers(buffer: ctypes.Array[ctypes.c_ulonglong]) -> Registers:
    """By name."""
    return dict(zip(NAMES, buffer, strict=True))


def write_registers(registers: Registers) -> ctypes.Array[ctypes.c_ulonglong]:
    """In the kernel's order."""
    return Buffer(*(registers[name] & (2**64 - 1) for name in NAMES))


def signed(value: int) -> int:
    """A register as a signed number."""
    return ctypes.c_longlong(value).value


def arguments(registers: Registers) -> tuple[int, ...]:
    """Of the system call that a thread is in."""
    return tuple(registers[name] for name in ("rdi", "rsi", "rdx", "r10", "r8", "r9"))
