"""One rank that trains until its input ends: ``rank.py RANK WORLD PORT``; prints how many steps it made, all of them right.

Lines of its input are run as Python, by the thread that reads them; each is answered by ``told``.
"""

# ruff: noqa: T201 - what it prints is read by tests

import datetime as dt
import os
import sys
import threading

import torch
from torch import distributed as dist


def _read(over: threading.Event) -> None:
    for line in sys.stdin:
        exec(line, {"torch": torch, "dist": dist})  # noqa: S102
        print("told", flush=True)
    over.set()


def main() -> None:
    """Every rank adds its number and whether it is to stop."""
    rank, world, port = (int(word) for word in sys.argv[1:4])
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group(
        "gloo",
        init_method=f"tcp://127.0.0.1:{port}",
        rank=rank,
        world_size=world,
        timeout=dt.timedelta(seconds=60),
    )
    over = threading.Event()
    threading.Thread(target=_read, args=(over,), daemon=True).start()
    steps, wrong = 0, 0
    print("ready", flush=True)
    while True:
        values = torch.tensor([float(rank), float(over.is_set())] + [1.0] * 62)
        dist.all_reduce(values)
        wrong += values[0].item() != world * (world - 1) / 2 or values[-1].item() != world
        steps += 1
        if values[1].item():
            break
        over.wait(0.005)
    dist.barrier()
    dist.destroy_process_group()
    print("wrong" if wrong or steps < 5 else "right", flush=True)


if __name__ == "__main__":
    main()
