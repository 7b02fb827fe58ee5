"""Stacks from C: when SIGTERM or a fatal signal ends the rank, and when somebody who may not trace it asks by a signal.

faulthandler writes them into files that stay open, and then lets the signal do what it did before. Where the program handles
a signal itself, it is left alone; what the program sets later wins. Cost: none until a signal comes, then about 1 ms.
"""

import ctypes
import faulthandler
import os
import signal

from .folder import open_log
from .harmless import harmless

_YAMA = "/proc/sys/kernel/yama/ptrace_scope"
_RESTRICTED = "1"
_PR_SET_PTRACER, _ANYBODY = 0x59616D61, -1


class Signals:
    """What was registered in this process; a forked child takes it back, since the files are not its own."""

    def __init__(self) -> None:
        self._registered: list[int] = []
        self._is_enabled = False

    def listen(self, terminated: str, fatal: str, asked: str) -> int | None:
        """Registers all three; the answer is the signal to ask by, None if there is none to spare.

        Args:
            terminated: file for SIGTERM.
            fatal: file for SIGSEGV and its like.
            asked: file for the signal to ask by.
        """
        if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
            faulthandler.register(signal.SIGTERM, file=open_log(terminated), all_threads=True, chain=True)
            self._registered.append(signal.SIGTERM)
        if not faulthandler.is_enabled():
            faulthandler.enable(file=open_log(fatal), all_threads=True)
            self._is_enabled = True
        number = _spare_signal()
        if number is not None:
            faulthandler.register(number, file=open_log(asked), all_threads=True, chain=False)
            self._registered.append(number)
        return number

    def take_back(self) -> None:
        """Puts everything back as it was. For a forked child."""
        for number in self._registered:
            harmless(faulthandler.unregister)(number)
        if self._is_enabled:
            harmless(faulthandler.disable)()
        self._registered.clear()
        self._is_enabled = False


def _spare_signal() -> int | None:
    """The highest real-time signal that nobody handles or ignores."""
    with open("/proc/self/status", encoding="utf-8") as file:
        masks = dict(line.rstrip("\n").split(":\t", 1) for line in file if line.startswith("Sig"))
    taken = int(masks["SigIgn"], 16) | int(masks["SigCgt"], 16) | int(masks["SigBlk"], 16)
    numbers = range(signal.SIGRTMAX, signal.SIGRTMIN + 1, -1)
    return next((number for number in numbers if not taken >> (number - 1) & 1), None)


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
