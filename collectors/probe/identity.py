"""Who this process is: what launchers say in the environment, and what the kernel says of it."""

import os
import socket
import sys

IDENTITY_NAMES = (
    "GROUP_RANK",
    "HOSTNAME",
    "KUBERNETES_SERVICE_HOST",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "PARDBG_JOB",
    "PET_RDZV_ID",
    "POD_NAME",
    "POD_NAMESPACE",
    "RANK",
    "SLURMD_NODENAME",
    "SLURM_ARRAY_JOB_ID",
    "SLURM_ARRAY_TASK_ID",
    "SLURM_HET_JOB_ID",
    "SLURM_HET_JOB_OFFSET",
    "SLURM_JOB_ID",
    "SLURM_LOCALID",
    "SLURM_NTASKS",
    "SLURM_PROCID",
    "SLURM_STEP_ID",
    "TORCHELASTIC_RESTART_COUNT",
    "TORCHELASTIC_RUN_ID",
    "WORLD_SIZE",
)
"""All that is kept of the environment. Nothing else of it is stored anywhere."""

_PRESENCE_ONLY = "KUBERNETES_SERVICE_HOST"
_LONGEST_VALUE = 4096
_GROUPS = "/sys/fs/cgroup"
_OOM_FILES = ("memory.events", "memory.oom_control")  # of version 2 and of version 1
_START_TIME = 19  # of the fields behind the command's name in /proc/PID/stat


def read_rank() -> int | None:
    """The rank that the environment gives to this process, None if it gives none."""
    return _number("RANK")


def read_attempt() -> int:
    """How often the launcher has started the job before: torchrun's count, else Slurm's."""
    return _number("TORCHELASTIC_RESTART_COUNT") or _number("SLURM_RESTART_COUNT") or 0


def describe() -> dict[str, object]:
    """The unchanging part of `rank.json`."""
    kept = {name: os.environ[name][:_LONGEST_VALUE] for name in IDENTITY_NAMES if name in os.environ}
    if _PRESENCE_ONLY in kept:
        kept[_PRESENCE_ONLY] = "set"
    folder = cgroup_folder()
    return {
        "schema": "pardbg.rank/1",
        "rank": read_rank(),
        "local_rank": _number("LOCAL_RANK"),
        "world_size": _number("WORLD_SIZE"),
        "attempt": read_attempt(),
        "pid": os.getpid(),
        "started_ticks": started_ticks(),
        "host": socket.gethostname(),
        "boot_id": _first_line("/proc/sys/kernel/random/boot_id"),
        "environment": kept,
        "python": sys.version.split()[0],
        "cgroup": folder,
        "oom_kills": count_oom_kills(folder),
    }


def started_ticks() -> int:
    """When this process was started, clock ticks since boot: with its number it is unique."""
    return int(_first_line("/proc/self/stat").rpartition(")")[2].split()[_START_TIME])


def cgroup_folder() -> str | None:
    """The folder of this process's memory control group, of version 1 or 2; None if there is none."""
    try:
        with open("/proc/self/cgroup", encoding="utf-8", errors="surrogateescape") as file:
            lines = [line.rstrip("\n").split(":", 2) for line in file]
    except OSError:
        return None
    old = next((path for _, controllers, path in lines if "memory" in controllers.split(",")), None)
    if old is not None:
        return f"{_GROUPS}/memory{old}".rstrip("/")
    new = next((path for number, _, path in lines if number == "0"), None)
    return f"{_GROUPS}{new}".rstrip("/") if new is not None else None


def count_oom_kills(folder: str | None) -> int | None:
    """How many processes of a control group the kernel has killed for memory so far, None if it does not say."""
    for name in _OOM_FILES:
        try:
            with open(f"{folder}/{name}", encoding="utf-8") as file:
                return next((int(line.split()[1]) for line in file if line.startswith("oom_kill ")), None)
        except (OSError, ValueError, IndexError):
            continue
    return None


def _first_line(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.readline().strip()


def _number(name: str) -> int | None:
    text = os.environ.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else None
