"""A stand-in for the monitor thread of ProcessGroupNCCL, which this machine has no GPU for: its FIFO, its poll, its writer.

Arguments: the pipe's stem, the dump's prefix, the rank, how it answers (``slowly``, ``never``, ``deaf``), and seconds before it
looks at its pipe again. As in torch 2.13: unlink, mkfifo 0666, open O_RDONLY | O_NONBLOCK, read 128 bytes at each poll, dump in
a thread, truncate and write in place. The dump it writes carries its own thread's address, as the real one does.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path

stem, prefix, rank, manner, poll_s = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], float(sys.argv[5])
PARTS = 20


def dump(number: int) -> None:
    entry = {
        "profiling_name": "nccl:all_reduce",
        "process_group": ["0", "default_pg"],
        "pg_id": 0,
        "thread_id": str(threading.main_thread().ident),
        "state": "scheduled",
        "time_created_ns": time.time_ns(),
    }
    entries = [{**entry, "collective_seq_id": seq, "record_id": seq} for seq in range(1, 200 + number)]
    data = json.dumps({"version": "2.10", "pg_config": {}, "pg_status": {}, "entries": entries}).encode()
    part = -(-len(data) // PARTS)
    with Path(f"{prefix}{rank}").open("wb", buffering=0) as file:
        for start in range(0, len(data), part):
            file.write(data[start : start + part])
            time.sleep(0.01)


name = f"{stem}{rank}.pipe"
Path(name).unlink(missing_ok=True)
os.mkfifo(name, 0o666)
pipe = os.open(name, os.O_RDONLY | os.O_NONBLOCK)
sys.stdout.write("ready\n")
sys.stdout.flush()
asked = 0
while True:
    time.sleep(poll_s)
    if manner != "deaf" and os.read(pipe, 128):
        asked += 1
        Path(f"{stem}{rank}.asked").write_text(str(asked))
        if manner == "slowly":
            threading.Thread(target=dump, args=(asked,)).start()
