"""Stacks from C: when SIGTERM or a fatal signal ends the rank, and when somebody who may not trace it asks by a signal.

faulthandler writes them into files that stay open, and then lets the signal do what it did before. Where the program handles
a signal itself, it is left alone; what the program sets later wins. Cost: none until a signal comes, then about 1 ms.
"""

import ctypes
import faulthandler
import os
import signal

from .folder import open_log
from .places import ASKED_STACKS, ENDED_STACKS, FATAL_STACKS

_YAMA = "/proc/sys/kernel/yama/ptrace_scope"
_RESTRICTED = "1"
_FATAL = frozenset({signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT})
_PR_SET_PTRACER, _ANYBODY = 0x59616D61, -1


class Signals:
    """What is registered in this process, and where to: descriptors, by the names of the files.

    What was registered stays so in a forked child, where it may be the program's own by then. Only its descriptors change:
    they lead nowhere, until the child is a rank itself.
    """

    def __init__(self) -> None:
        self._descriptors: dict[str, int] = {}
        self._spare: int | None = None

    def listen(self, folder: str) -> int | None:
        """Registers all three; the answer is the signal to ask by, None if there is none to spare."""
        if self._descriptors:
            for name, descriptor in self._descriptors.items():
                _lead_to(descriptor, open_log(os.path.join(folder, name)))
            return self._spare
        taken = _taken()
        if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL and signal.SIGTERM not in taken:
            faulthandler.register(signal.SIGTERM, file=self._open(folder, ENDED_STACKS), all_threads=True, chain=True)
        if not faulthandler.is_enabled() and not taken & _FATAL:  # a Java machine lives on SIGSEGV
            faulthandler.enable(file=self._open(folder, FATAL_STACKS), all_threads=True)
        self._spare = next((number for number in range(signal.SIGRTMAX, signal.SIGRTMIN + 1, -1) if number not in taken), None)
        if self._spare is not None:
            faulthandler.register(self._spare, file=self._open(folder, ASKED_STACKS), all_threads=True, chain=False)
        return self._spare

    def lead_nowhere(self) -> None:
        """For a forked child: the files are its parent's."""
        for descriptor in self._descriptors.values():
            _lead_to(descriptor, os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC))

    def _open(self, folder: str, name: str) -> int:
        self._descriptors[name] = open_log(os.path.join(folder, name))
        return self._descriptors[name]


def _lead_to(descriptor: int, source: int) -> None:
    try:
        os.dup2(source, descriptor, inheritable=False)
    finally:
        os.close(source)


def _taken() -> frozenset[int]:
    """The signals that somebody handles, ignores or blocks, C code included."""
    with open("/proc/self/status", encoding="utf-8") as file:
        masks = [int(line.split()[1], 16) for line in file if line.startswith(("SigIgn:", "SigCgt:", "SigBlk:"))]
    return frozenset(number for number in range(1, signal.SIGRTMAX + 1) if any(mask >> (number - 1) & 1 for mask in masks))


def allow_tracing() -> None:
    """Lets processes of the same user look at this one, where the kernel would let only its ancestors (Yama, scope 1).

    Not where ``PARDBG_ATTACH=never`` says that nobody shall.
    """
    if os.environ.get("PARDBG_ATTACH") == "never":
        return
    try:
        with open(_YAMA, encoding="utf-8") as file:
            scope = file.read().strip()
    except OSError:
        return
    if scope == _RESTRICTED:
        ctypes.CDLL(None).prctl(_PR_SET_PTRACER, ctypes.c_ulong(_ANYBODY), 0, 0, 0)
