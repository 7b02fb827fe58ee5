"""Looks like a rank, and gets a signal from itself a moment after it has been attached to: ``first.py SIGNAL``."""

# ruff: noqa: T201 - what it prints is read by tests

import json
import os
import sys
import threading
import time
from types import ModuleType


class Groups(ModuleType):
    """Whoever asks for its ``_world`` is a shot."""

    def __getattr__(self, name: str) -> object:
        if name == "_world":
            threading.Timer(0.02, os.kill, (os.getpid(), int(sys.argv[1]))).start()
        raise AttributeError(name)


if __name__ == "__main__":
    sys.modules |= {name: Groups(name) for name in ("torch.distributed.distributed_c10d", "torch._C._distributed_c10d")}
    threading.Thread(target=time.sleep, args=(2,)).start()
    print("ready", flush=True)
    time.sleep(2)
    print(json.dumps("over"))
