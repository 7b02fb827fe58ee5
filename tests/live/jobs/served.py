"""`orders.py` in ranks that serve what torch can tell of them, as `torch.distributed.debug` and the control plane do."""

import os
from pathlib import Path

import orders  # type: ignore[import-not-found]  # beside it, on the path of a script
from torch._C._distributed_c10d import _WorkerServer

if __name__ == "__main__":
    server = _WorkerServer(str(Path.cwd() / f"rank_{os.environ['RANK']}.sock"))
    orders.main()
