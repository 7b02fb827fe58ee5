"""A rank that ends without a word to its process group, after a call of so many seconds: ``ending.py holding|free SECONDS``."""

# ruff: noqa: T201 - what it prints is read by tests

import ctypes
import socket
import sys

import torch
from torch import distributed as dist

if __name__ == "__main__":
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=0, world_size=1)
    dist.all_reduce(torch.ones(3))
    print("ready", flush=True)
    library = ctypes.PyDLL(None) if sys.argv[1] == "holding" else ctypes.CDLL(None)  # the interpreter lock
    library.usleep(int(float(sys.argv[2]) * 1e6))
