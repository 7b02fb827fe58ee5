"""Starts an agent and, one after the other, ranks of different jobs with one process number, in a pid namespace of its own.

`unshare --pid --fork --mount-proc python reuse.py OPTIONS-OF-THE-AGENT`; prints a line of JSON a rank.
"""

import json
import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

LIVES = 15
NUMBER = 4242
SEEN_WITHIN_S = 20.0
LIVES_FOR_S = 2.0
LAST = Path("/proc/sys/kernel/ns_last_pid")
SLEEP = "import time\nwhile True: time.sleep(0.2)"


def main() -> None:
    """Ends the agent at the end."""
    address = sys.argv[sys.argv.index("--listen") + 1]
    with subprocess.Popen([sys.executable, "-m", "pardbg", "agent", *sys.argv[1:]]) as agent:
        try:
            while not page_of(address):
                time.sleep(0.2)
            for life in range(LIVES):
                print(json.dumps(live(f"reuse-{life}", life, address)), flush=True)  # noqa: T201
        finally:
            agent.terminate()


def live(job: str, life: int, address: str) -> dict[str, object]:
    """One rank: whether the agent showed it, and nobody else, before it was killed."""
    rank = start(job, 28000 + life)
    until_s, is_seen = time.monotonic() + SEEN_WITHIN_S, False
    while time.monotonic() < until_s and not is_seen:
        time.sleep(0.2)
        jobs = [line for line in page_of(address).splitlines() if line.startswith("pardbg_rank_quiet_seconds{")]
        is_seen = len(jobs) == 1 and f'job_id="{job}"' in jobs[0]
    if life % 3:  # else the next one comes at once
        time.sleep(LIVES_FOR_S)
    os.kill(rank, 9)
    os.waitpid(rank, 0)
    return {"pid": rank, "seen": is_seen}


def start(job: str, port: int) -> int:
    """A rank of a job of one, with the number."""
    variables = {
        "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
        "PARDBG_JOB": job,
    }  # fmt: skip
    for _ in range(50):
        LAST.write_text(str(NUMBER - 1))
        rank = subprocess.Popen([sys.executable, "-I", "-S", "-c", SLEEP], env=variables)
        if rank.pid == NUMBER:
            rank.returncode = 0  # `live` waits for it
            return NUMBER
        rank.kill()
        rank.wait()
    raise SystemExit(f"number {NUMBER} cannot be had")


def page_of(address: str) -> str:
    """The agent's metrics; empty if it does not answer."""
    try:
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=5) as answer:
            return str(answer.read().decode())
    except OSError:
        return ""


if __name__ == "__main__":
    main()
