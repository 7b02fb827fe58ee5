"""ptrace, as far as a shot needs it.

Cost to the target: one thread stands still from `stop` to `release`, 0.2 to 1.1 ms. A tracer that dies in between lets it go on
as it was: the kernel detaches. That also holds for the thread of this process that traces: whoever uses this does so in a
thread that ends soon, so that nothing stays attached whatever goes wrong. Deadline: `_STOP_S`.
Privilege: that of tracing the process.
"""

import ctypes
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from pardbg.collectors.attach.registers import Buffer, Registers, read_registers, write_registers

_SEIZE, _INTERRUPT, _DETACH = 0x4206, 0x4207, 17
_GETREGS, _SETREGS, _GETREGSET, _GETSIGMASK = 12, 13, 0x4204, 0x420A
_EVENT_STOP, _TRAP = 128, 5
_XSTATE_NOTE = 0x202
_MOST_STATE_BYTES = 16 * 1024
_WALL = 0x40000000
_STOP_S = 0.25
_EAGER_S = 0.002
_SHORT_PAUSE_S, _PAUSE_S = 0.00002, 0.0005


class ShotError(Exception):
    """Nothing was done: the thread is not, or no longer, where it may be borrowed."""


class Tracee:
    """A thread that stands still for us."""

    def __init__(self, tid: int) -> None:
        self._tid = tid
        self._call = ctypes.CDLL(None, use_errno=True).ptrace
        self._call.argtypes = [ctypes.c_ulong, ctypes.c_ulong, ctypes.c_void_p, ctypes.c_void_p]
        self._call.restype = ctypes.c_long

    def registers(self) -> Registers:
        """Its registers."""
        buffer = Buffer()
        self._ptrace(_GETREGS, data=ctypes.addressof(buffer))
        return read_registers(buffer)

    def start(self, registers: Registers) -> None:
        """Gives it other registers. This is the one change of a shot: nothing before it matters, nothing after it is needed."""
        buffer = write_registers(registers)
        self._ptrace(_SETREGS, data=ctypes.addressof(buffer))

    def floating_point_state(self) -> bytes:
        """Its floating point and vector registers, in the form of XSAVE."""
        buffer = ctypes.create_string_buffer(_MOST_STATE_BYTES)
        vector = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), _MOST_STATE_BYTES)
        self._ptrace(_GETREGSET, address=_XSTATE_NOTE, data=ctypes.addressof(vector))
        return buffer.raw[: vector[1]]

    def signal_mask(self) -> int:
        """The signals that it blocks."""
        mask = ctypes.c_uint64()
        self._ptrace(_GETSIGMASK, address=8, data=ctypes.addressof(mask))
        return mask.value

    def stop(self) -> None:
        """Takes hold of it and waits until it stands still, of our doing alone.

        Raises:
            ShotError: if it ends, was stopped by a signal, or does not stop: it then stays attached until this thread ends.
            OSError: if the kernel refuses.
        """
        self.seize()
        self.hold()

    def seize(self) -> None:
        """Becomes its tracer, which it does not notice."""
        self._ptrace(_SEIZE)

    def hold(self) -> None:
        """The rest of `stop`."""
        self._ptrace(_INTERRUPT)
        status = self._wait()
        if not os.WIFSTOPPED(status):
            raise ShotError("it has ended")
        signal, event = os.WSTOPSIG(status), status >> 16
        if event == _EVENT_STOP and signal == _TRAP:
            return
        self.release(signal if event == 0 else 0)  # a signal has come at the same moment: it gets it
        raise ShotError("a signal came to it" if event == 0 else "it is stopped")

    def release(self, signal: int = 0) -> None:
        """Lets it go; one that was killed meanwhile is gone already."""
        try:
            self._ptrace(_DETACH, data=signal or None)
        except ProcessLookupError:
            return

    def _wait(self) -> int:
        """Its status once it has changed. Not for ever: a thread that the kernel holds cannot stop."""
        began_s = time.perf_counter()
        while (waited_s := time.perf_counter() - began_s) < _STOP_S:
            tid, status = os.waitpid(self._tid, _WALL | os.WNOHANG)
            if tid:
                return status
            time.sleep(_SHORT_PAUSE_S if waited_s < _EAGER_S else _PAUSE_S)
        raise ShotError("it does not stop")

    def _ptrace(self, request: int, *, address: int | None = None, data: int | None = None) -> None:
        if self._call(request, self._tid, address, data) == -1:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))


@contextmanager
def stopped(tid: int) -> Iterator[Tracee]:
    """A thread that stands still within the block. In a thread of ours that ends soon."""
    tracee = Tracee(tid)
    tracee.stop()
    try:
        yield tracee
    finally:
        tracee.release()
