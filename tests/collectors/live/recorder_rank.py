"""One rank of a hanging gloo job. ``SERVER`` says how its recorder is reachable, ``HANG`` what it does at its fourth step.

It says "ready" just before; the others wait in their fourth all_reduce for the one that hangs.
"""

import ctypes
import os
import signal
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d

dist.init_process_group("gloo")
server = os.environ.get("SERVER", "")
if server == "socket":
    kept = c10d._WorkerServer(os.environ["TORCH_WORKER_SERVER_SOCKET"])
elif server == "debug":
    from torch.distributed import debug

    debug.start_debug_server(port=0)

tensor = torch.ones(8)
for _ in range(3):
    dist.all_reduce(tensor)
if os.environ.get("WRITES_DUMP"):
    Path(os.environ["TORCH_FR_DUMP_TEMP_FILE"] + os.environ["RANK"]).write_bytes(c10d._dump_fr_trace())  # type: ignore[attr-defined]
sys.stdout.write("ready\n")
sys.stdout.flush()
match os.environ.get("HANG"):
    case "gil":
        ctypes.PyDLL(None).sleep(3600)
    case "sleep":
        time.sleep(3600)
    case "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
dist.all_reduce(tensor)
