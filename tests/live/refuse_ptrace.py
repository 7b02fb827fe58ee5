"""Runs Python with its remaining arguments under a seccomp filter that refuses ptrace and reading another process's memory."""

import ctypes
import os
import struct
import sys

PTRACE, READV, WRITEV = 101, 310, 311  # x86_64
NO_NEW_PRIVS, SET_SECCOMP, FILTER = 38, 22, 2
LOAD_NUMBER, EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050001  # EPERM


def main() -> None:
    """Installs the filter, then becomes the command."""
    refused = (PTRACE, READV, WRITEV)
    program = [(LOAD_NUMBER, 0, 0, 0)]
    program += [(EQUAL, len(refused) - index, 0, number) for index, number in enumerate(refused)]
    program += [(RETURN, 0, 0, ALLOW), (RETURN, 0, 0, REFUSE)]
    code = b"".join(struct.pack("HBBI", *instruction) for instruction in program)
    buffer = ctypes.create_string_buffer(code)
    head = struct.pack("HxxxxxxQ", len(program), ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0)
    if libc.prctl(SET_SECCOMP, FILTER, ctypes.create_string_buffer(head)):
        sys.exit(f"no seccomp here: {os.strerror(ctypes.get_errno())}")
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])  # noqa: S606 - the command as it was given


if __name__ == "__main__":
    main()
