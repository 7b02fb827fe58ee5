"""Trains a small model in DistributedDataParallel for ever, with the faults that its arguments name.

``flip=RANK``: a bit of one weight of this rank flips after 20 steps. ``same=RANK``: this rank reads the data of rank 0.
``accumulate``: a step takes four passes, three of them within ``no_sync``. ``steps=N`` ends it, ``pause=S`` sleeps after each.
It prints a digest of weights and losses at its end.
"""

import contextlib
import hashlib
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

FLIP_AFTER = 20


def main(words: dict[str, str]) -> None:
    """Trains."""
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(7)
    layers = [torch.nn.Linear(16, 32), torch.nn.BatchNorm1d(32), torch.nn.ReLU(), torch.nn.Linear(32, 8)]
    model = DistributedDataParallel(torch.nn.Sequential(*layers))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    data = torch.Generator().manual_seed(0 if words.get("same") == str(rank) else rank)
    digest = hashlib.sha256()
    for step in range(int(words.get("steps", 10**9))):
        for number in range(4 if "accumulate" in words else 1):
            is_last = "accumulate" not in words or number == 3
            with contextlib.nullcontext() if is_last else model.no_sync():
                loss = model(torch.randn(8, 16, generator=data)).square().mean()
                loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        digest.update(loss.detach().numpy().tobytes())
        if step == FLIP_AFTER and words.get("flip") == str(rank):
            with torch.no_grad():
                model.module[3].weight.view(torch.int32)[1, 2] ^= 1 << 20
        time.sleep(float(words.get("pause", 0)))
    for parameter in model.parameters():
        digest.update(parameter.detach().numpy().tobytes())
    sys.stdout.write(f"rank {rank} digest {digest.hexdigest()}\n")
    dist.destroy_process_group()


if __name__ == "__main__":
    main(dict(word.partition("=")[::2] for word in sys.argv[1:]))
