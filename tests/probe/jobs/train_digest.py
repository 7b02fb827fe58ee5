"""A small training whose every output is known beforehand, rank by rank: what a probe must not change.

Thirty steps of a small model with fixed seeds; each rank prints the digest of its weights and its loss. Then it ends as its
first argument says. ``BEFORE`` in the environment is code that runs first, ``WAIT_FOR`` a file that it waits for in the middle,
``READY_FILE`` what it makes then.
"""

import hashlib
import os
import sys
import time
from pathlib import Path

exec(os.environ.get("BEFORE", ""))  # noqa: S102 - a test's own

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

STEPS = 30


def main() -> None:
    """Trains, prints, ends."""
    dist.init_process_group("gloo")
    torch.manual_seed(7)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    data = torch.Generator().manual_seed(dist.get_rank())
    loss = torch.zeros(1)
    for step in range(STEPS):
        if step == STEPS // 2:
            pause()
        batch = torch.randn(4, 8, generator=data)
        loss = (model(batch) - batch.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
        optimizer.step()
    model.eval()
    torch.save(model.state_dict(), os.devnull)
    digest = hashlib.sha256(b"".join(value.detach().numpy().tobytes() for value in model.state_dict().values())).hexdigest()
    print(f"rank {dist.get_rank()} loss {loss.item():.9f} weights {digest}", flush=True)  # noqa: T201 - for the test
    end(*sys.argv[1:2])


def pause() -> None:
    """Says that it is half way, and waits for a file where it is told to."""
    if ready := os.environ.get("READY_FILE"):
        Path(ready).touch()
    wait_for = os.environ.get("WAIT_FOR")
    while wait_for and not Path(wait_for).exists():
        time.sleep(0.01)


def end(way: str = "return") -> None:
    """Ends in the given way; a number is an exit code."""
    if way == "destroy":
        dist.destroy_process_group()
    elif way != "return":
        sys.exit(int(way))


if __name__ == "__main__":
    main()
