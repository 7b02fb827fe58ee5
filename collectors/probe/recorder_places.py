"""Moves torch's own dumps and its dump pipe, where `pardbg run` has named them, to places that fit this rank and attempt.

A restart would write over the dumps of the attempt before. And torch ends the process if it cannot make its pipe: so
`pardbg run` names one in a folder that is everywhere, and it is moved where only the job's user can reach it. What the user
has set is left alone.
"""

import os
import re
from collections.abc import Mapping, MutableMapping

from .folder import make_private, make_root
from .places import JOB_VARIABLE, attempt_folder, disk_root, dump_prefix, job_folder

DUMP_VARIABLES = ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")
PIPE_VARIABLE = "TORCH_NCCL_DEBUG_INFO_PIPE_FILE"
_JOB_VARIABLES = (JOB_VARIABLE, "TORCHELASTIC_RUN_ID", "SLURM_JOB_ID")
_UNNAMED = "unnamed"
_RENAMED = (("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"), DUMP_VARIABLES)
_FIRST_WITH_NEW_NAMES = (2, 10)
_OWN_PIPE = re.compile(r"/tmp/pardbg-\d+-[0-9a-f]{16}-")  # noqa: S108 - recognised, not made


def make_attempt_folder(environment: Mapping[str, str], attempt: int) -> str:
    """Makes the folder of this attempt on the disk, and those above it.

    Raises:
        OSError: if one of them cannot be made, or is not ours.
    """
    job = next((environment[name] for name in _JOB_VARIABLES if environment.get(name)), _UNNAMED)
    root = disk_root(os.geteuid(), environment)
    whole = job_folder(root, job)
    folder = attempt_folder(whole, attempt)
    make_root(root)
    make_private(whole)
    make_private(folder)
    return folder


def move_dumps(environment: MutableMapping[str, str], folder: str) -> None:
    """Points torch's dumps from the job's folder to that of the attempt."""
    for name in DUMP_VARIABLES:
        if environment.get(name) == dump_prefix(os.path.dirname(folder)):
            environment[name] = dump_prefix(folder)


def drop_old_names(environment: MutableMapping[str, str], torch_version: str) -> None:
    """Drops the old name of a variable where the new one says the same and this torch knows it: it complains of old ones."""
    numbers = re.match(r"(\d+)\.(\d+)", torch_version)
    if numbers is None or (int(numbers[1]), int(numbers[2])) < _FIRST_WITH_NEW_NAMES:
        return
    for new, old in _RENAMED:
        if environment.get(new) is not None and environment.get(new) == environment.get(old):
            del environment[old]


def move_pipe(environment: MutableMapping[str, str], folder: str) -> None:
    """Points torch's dump pipe into a folder of our own."""
    if _OWN_PIPE.fullmatch(environment.get(PIPE_VARIABLE, "")):
        environment[PIPE_VARIABLE] = os.path.join(folder, "pipe_rank_")
