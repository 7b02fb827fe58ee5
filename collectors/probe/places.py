"""Where a probe keeps what others read: pure names, the same for the one who writes and those who look.

Two roots. What is written in every step lies in memory (tmpfs): a mapped page of a file on a disk may block its writer for as
long as the disk is busy. What may be large, the dumps of recorders, lies on the disk: `/dev/shm` is small in containers, and
data loaders die where it is full. ``PARDBG_DIR`` names one folder for both.
"""

import hashlib
import os
import re
from collections.abc import Mapping

ROOT_VARIABLE = "PARDBG_DIR"
JOB_VARIABLE = "PARDBG_JOB"

RANK_FILE = "rank.json"
PAGE_FILE = "page"
ROUTING_FILE = "routing"
"""Only where a model has routers."""
GROUPS_FILE = "groups.jsonl"
SERVER_SOCKET = "server.sock"
ENDED_STACKS = "stacks-terminated.txt"
"""Written by faulthandler when SIGTERM ends the process."""
INTERRUPTED_STACKS = "stacks-interrupted.txt"
"""Written by the probe when Ctrl-C ends it."""
FATAL_STACKS = "stacks-fatal.txt"
"""Written by faulthandler when a signal like SIGSEGV ends it."""
ASKED_STACKS = "stacks-asked.txt"
"""Written by faulthandler when somebody sends the signal that `RANK_FILE` names."""

_LONGEST_NAME = 40
_UNSAFE = re.compile(r"[^A-Za-z0-9._+-]+")


def memory_root(uid: int, environment: Mapping[str, str]) -> str:
    """The folder of a user's ranks: one folder a process in it."""
    return environment.get(ROOT_VARIABLE) or f"/dev/shm/pardbg-{uid}"  # noqa: S108 - 0700, checked by its owner


def disk_root(uid: int, environment: Mapping[str, str]) -> str:
    """The folder of a user's jobs: one folder a job in it."""
    return environment.get(ROOT_VARIABLE) or f"/tmp/pardbg-{uid}"  # noqa: S108 - as above


def rank_folder(root: str, pid: int, started_ticks: int) -> str:
    """The folder of one process, by what identifies it: its number and its start in clock ticks since boot."""
    return os.path.join(root, f"{pid}-{started_ticks}")


def job_folder(root: str, job: str) -> str:
    """The folder of one job on the disk. Names that make no good file name get a digest."""
    name = _UNSAFE.sub("-", job).strip(".-")[:_LONGEST_NAME] or "job"
    if name != job:
        name += "-" + hashlib.sha256(job.encode(errors="surrogateescape")).hexdigest()[:8]
    return os.path.join(root, "job-" + name)


def attempt_folder(folder: str, attempt: int) -> str:
    """The part of a job's folder for one attempt: restarts overwrite nothing."""
    return os.path.join(folder, f"attempt{attempt}")


def dump_prefix(folder: str) -> str:
    """What torch puts a rank's number behind, for a dump that it writes itself."""
    return os.path.join(folder, "dump_rank_")


def last_dump(folder: str, rank: int, pid: int) -> str:
    """The dump that the probe writes when a rank ends."""
    return os.path.join(folder, f"last-{pid}_rank_{rank}")
