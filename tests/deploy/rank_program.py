"""A process that is a rank for others: it has the environment, a probe's folder with a page, and a socket that can be asked.

No torch: it starts in a tenth of a second. In the folder that its argument names it writes its number, and that it was asked.
"""

import os
import socket
import sys
import threading
import time
from pathlib import Path

from pardbg.collectors.probe import identity, places
from pardbg.collectors.probe.folder import make_private, make_root, write_json
from pardbg.collectors.probe.page import Page
from pardbg.collectors.probe.page_format import StepRecord

STEP = 41


def keep_probe(folder: str) -> None:
    """What a probe writes."""
    make_root(places.memory_root(os.geteuid(), os.environ))
    make_private(folder)
    page = Page(f"{folder}/{places.PAGE_FILE}")
    now_ns = time.time_ns()
    page.write(StepRecord, STEP, now_ns, 10**8, 10**8, 1, 0)
    rest = {"created_ns": now_ns, "is_member": True, "torch": "2.13.0", "problems": []}
    write_json(f"{folder}/{places.RANK_FILE}", {**identity.describe(), **rest})


def serve(path: str, visitors: Path) -> None:
    """Writes down who comes."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        while True:
            connection, _ = listening.accept()
            connection.close()
            visitors.write_text("somebody\n")


def wait_for_the_others() -> None:
    """What its stack shows."""
    while True:
        time.sleep(0.2)


if __name__ == "__main__":
    work = Path(sys.argv[1])
    folder = places.rank_folder(places.memory_root(os.geteuid(), os.environ), os.getpid(), identity.started_ticks())
    keep_probe(folder)
    threading.Thread(target=serve, args=(f"{folder}/{places.SERVER_SOCKET}", work / "visitors"), daemon=True).start()
    (work / "rank.pid").write_text(str(os.getpid()))
    wait_for_the_others()
