"""Ends in the way that its argument names, after some steps in a world of one."""

# ruff: noqa: T201 - what it prints is compared

import ctypes
import faulthandler
import os
import signal
import sys
import threading
import time
from types import FrameType, TracebackType
from typing import NoReturn

import torch
import torch.distributed as dist

STEPS = 3


def raise_error() -> None:
    """An exception that nobody catches."""
    raise ValueError("the weights are gone")


def own_hook() -> None:
    """The program has its own `sys.excepthook`, which does not know of others."""

    def say(kind: type[BaseException], error: BaseException, _trace: TracebackType | None) -> None:
        print(f"own hook: {kind.__name__}: {error}", file=sys.stderr)

    sys.excepthook = say
    raise_error()


def exit_with_text() -> None:
    """A text, which means 1."""
    sys.exit("so long")


def exit_in_thread() -> None:
    """Ends a thread, not the process."""
    thread = threading.Thread(target=sys.exit, args=(9,))
    thread.start()
    thread.join()


def raise_system_exit() -> NoReturn:
    """Without `sys.exit`."""
    raise SystemExit(6)


def at_once() -> NoReturn:
    """Without the interpreter's end."""
    os._exit(status=7)


def terminated() -> None:
    """By SIGTERM, which nobody handles."""
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(60)


def own_handler() -> None:
    """By SIGTERM, which the program handles."""

    def leave(number: int, _frame: FrameType | None) -> NoReturn:
        print("own handler", number, flush=True)
        sys.exit(5)

    print(signal.signal(signal.SIGTERM, leave))
    terminated()


def interrupted() -> None:
    """By Ctrl-C."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what started us may ignore it
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(60)


def crashed() -> None:
    """By SIGSEGV."""
    ctypes.string_at(0)


def own_fault_handler() -> None:
    """By SIGSEGV, and the program has asked for stacks on standard error."""
    faulthandler.enable()
    crashed()


def forked_fault_handler() -> None:
    """A child by `fork`, by SIGSEGV, with the program's own fault handler."""
    faulthandler.enable()
    child = os.fork()
    if child == 0:
        crashed()
    print(os.waitpid(child, 0)[1], flush=True)


def main() -> None:
    """Trains a little, then ends."""
    dist.init_process_group("gloo")
    weight = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    for _ in range(STEPS):
        weight.grad = torch.ones(2)
        dist.all_reduce(weight.grad)
        optimizer.step()
    print(weight.tolist(), flush=True)
    WAYS[sys.argv[1]]()


WAYS = {
    function.__name__: function
    for function in (
        *(raise_error, own_hook, exit_with_text, exit_in_thread, raise_system_exit, at_once),
        *(terminated, own_handler, interrupted, crashed, own_fault_handler, forked_fault_handler),
    )
}

if __name__ == "__main__":
    main()
