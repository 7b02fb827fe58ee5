"""Becomes the command of its arguments under a seccomp filter that refuses to make sockets of AF_UNIX."""

import ctypes
import os
import struct
import sys

SOCKET, AF_UNIX = 41, 1  # x86_64
NO_NEW_PRIVS, SET_SECCOMP, FILTER = 38, 22, 2
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
NUMBER, FIRST_ARGUMENT = 0, 16
ALLOW, REFUSE = 0x7FFF0000, 0x00050001  # EPERM


def main() -> None:
    """Installs the filter, then becomes the command."""
    program = [
        (LOAD, 0, 0, NUMBER),
        (EQUAL, 0, 3, SOCKET),
        (LOAD, 0, 0, FIRST_ARGUMENT),
        (EQUAL, 0, 1, AF_UNIX),
        (RETURN, 0, 0, REFUSE),
        (RETURN, 0, 0, ALLOW),
    ]
    code = b"".join(struct.pack("HBBI", *instruction) for instruction in program)
    buffer = ctypes.create_string_buffer(code)
    head = struct.pack("HxxxxxxQ", len(program), ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0)
    if libc.prctl(SET_SECCOMP, FILTER, ctypes.create_string_buffer(head)):
        sys.exit(f"no seccomp here: {os.strerror(ctypes.get_errno())}")
    os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606 - the command as it was given


if __name__ == "__main__":
    main()
