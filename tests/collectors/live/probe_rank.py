"""A stand-in for a rank with a probe and without torch: its folder, a worker server's thread, and the signal to ask by.

Arguments: the root of the folders; how it stands: ``rests`` or ``runs``; how its server answers a question for stacks:
``well``, ``mute``, ``held`` (waking every 5 ms) or ``never`` (there is none). It says "ready" when all is set up.
"""

import faulthandler
import json
import os
import signal
import socket
import sys
import threading
import time
from pathlib import Path

from pardbg.collectors.probe.page_format import PAGE_SIZE, StepRecord, encode_header, encode_record
from pardbg.collectors.probe.places import ASKED_STACKS, GROUPS_FILE, PAGE_FILE, RANK_FILE, SERVER_SOCKET, rank_folder

root, stands, answers = sys.argv[1:4]
SIGNAL = signal.SIGRTMAX - 1
ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
folder = Path(rank_folder(root, os.getpid(), ticks))
folder.mkdir(mode=0o700, parents=True)


def write(name: str, data: bytes) -> None:
    (folder / name).write_bytes(data)


def serve(listener: socket.socket) -> None:
    Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text("pt_workerserver")
    ready.set()
    while True:
        connection, _ = listener.accept()
        line = connection.recv(65536).decode().split(" HTTP/1.1")[0]
        write("asked", (folder / "asked").read_bytes() + line.encode() + b"\n")
        if answers == "mute":
            kept.append(connection)
            continue
        while answers == "held":
            time.sleep(0.005)
        with connection:
            faulthandler.dump_traceback(dump := os.memfd_create("stacks"), all_threads=True)
            body = os.pread(dump, 10**6, 0)
            os.close(dump)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


def wait_here() -> None:
    """Where the stacks must show it."""
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while stands == "runs":
        pass
    time.sleep(3600)


ready, kept = threading.Event(), list[socket.socket]()
write("asked", b"")
page = bytearray(PAGE_SIZE)
head = encode_header(os.getpid(), 1)
page[: len(head)] = head
offset, record = encode_record(StepRecord(12, time.time_ns(), 5 * 10**8, 10**9, 1, 1), 1)
page[offset : offset + len(record)] = record
write(PAGE_FILE, bytes(page))
write(GROUPS_FILE, json.dumps({"name": "0", "desc": "default_pg", "runs": [[0, 1, 4]]}).encode() + b"\n")
boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
own = {"schema": "pardbg.rank/1", "pid": os.getpid(), "started_ticks": ticks, "boot_id": boot_id, "stack_signal": SIGNAL}
write(RANK_FILE, json.dumps(own).encode())
log = os.open(folder / ASKED_STACKS, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
if "uncaught" not in sys.argv:
    faulthandler.register(SIGNAL, file=log, all_threads=True, chain=False)
if answers != "never":
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(folder / SERVER_SOCKET))
    listener.listen(5)
    threading.Thread(target=serve, args=(listener,), daemon=True).start()
    ready.wait()
wait_here()
