"""Each rank writes its own flight recorder while it runs, and says when it stands still, ends, fails or is ended."""

import os
import signal
import socket
import sys
import threading
import time
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import msgspec
from tests.live.recorded.names import DUMP_PREFIX, SEEN_NAME, SIGNAL_PREFIX, Condition, RankSignal
from torch._C._distributed_c10d import _dump_fr_trace  # type: ignore[attr-defined]  # not in torch's stub

STILL_S = 2.0  # no line of the main thread executed for so long: longer than any step of these jobs, even on a loaded machine
POLL_S = 0.1


class BlackBox:
    """Keeps ``comm_lib_trace_rank_<rank>`` up to date, ten times a second: 34 entries take less than a millisecond.

    ``signal_of_rank_<rank>`` says whether the rank moves. Once the launcher has seen what it waited for, nothing is written
    any more, so that the end of the job leaves no trace in the dumps.
    """

    def __init__(self, dumps: Path, scratch: Path, rank: int) -> None:
        self._dump_path = dumps / f"{DUMP_PREFIX}{rank}"
        self._signal_path = scratch / f"{SIGNAL_PREFIX}{rank}"
        self._seen_path = scratch / SEEN_NAME
        self._rank = rank
        self._main_thread_id = threading.main_thread().ident or 0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="black-box", daemon=True)

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Records the block, and its end or its exception."""
        self._thread.start()
        try:
            yield
        except Exception:
            self._finish(Condition.RAISED)
            raise
        self._finish(Condition.RETURNED)

    def _finish(self, condition: Condition) -> None:
        self._is_over.set()
        self._thread.join()
        self._record(condition)

    def _watch(self) -> None:
        position: object = None
        condition = Condition.MOVING
        moved_at = time.monotonic()
        while not self._is_over.is_set():
            taken = signal.sigtimedwait({signal.SIGTERM}, POLL_S)
            if taken is not None and taken.si_signo == signal.SIGTERM:  # a tracer that attaches makes it return signal 0
                self._die_of_signal()
            before, position = position, _position_of(self._main_thread_id)
            if position != before:
                condition, moved_at = Condition.MOVING, time.monotonic()
                self._record(condition)
            elif condition is Condition.MOVING and time.monotonic() - moved_at >= STILL_S:
                condition = Condition.STILL
                self._record(condition)

    def _die_of_signal(self) -> None:
        """Torchrun ends all ranks as soon as one has failed. This thread can still act when the main one waits in C++."""
        self._record(Condition.ENDED)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        os.kill(os.getpid(), signal.SIGTERM)

    def _record(self, condition: Condition) -> None:
        if self._seen_path.exists():
            return
        with _without_inductor():
            dump = _dump_fr_trace(includeCollectives=True, includeStackTraces=True, onlyActive=False)
        _write_whole(self._dump_path, dump)
        message = RankSignal(
            rank=self._rank,
            local_rank=int(os.environ["LOCAL_RANK"]),
            host=socket.gethostname(),
            pid=os.getpid(),
            condition=condition,
        )
        _write_whole(self._signal_path, msgspec.json.encode(message))


def block_sigterm() -> None:
    """Leaves SIGTERM to the black box. Call it while there is one thread only: the others inherit the mask."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})


def _position_of(thread_id: int) -> tuple[tuple[int, int], ...]:
    """Where a thread is: frame and instruction, innermost first."""
    frame: FrameType | None = sys._current_frames().get(thread_id)
    position = []
    while frame is not None:
        position.append((id(frame), frame.f_lasti))
        frame = frame.f_back
    return tuple(position)


def _write_whole(path: Path, data: bytes) -> None:
    """A reader sees all of it or nothing."""
    partial = path.with_name(f".{path.name}.partial")
    partial.write_bytes(data)
    partial.rename(path)


@contextmanager
def _without_inductor() -> Iterator[None]:
    """Saves the import of ``torch._inductor``, which is asked for generated code when frames are named: 1.7 s, 823 modules.

    Nothing here is compiled, so a stand-in that knows no generated code gives the same dump in 0.2 ms (torch 2.13,
    combined_traceback.cpp).
    """
    if "torch._inductor" in sys.modules:
        yield
        return
    package, codecache = types.ModuleType("torch._inductor"), types.ModuleType("torch._inductor.codecache")
    vars(codecache)["PyCodeCache"] = types.SimpleNamespace(stack_frames_for_code=lambda _path, _line: None)
    vars(package)["codecache"] = codecache
    stand_ins = {module.__name__: module for module in (package, codecache)}
    sys.modules.update(stand_ins)
    try:
        yield
    finally:
        for name in stand_ins:
            del sys.modules[name]
