"""Moves torch's own dumps and its dump pipe, where `pardbg run` has named them, to places that fit this rank and attempt.

A restart would write over the dumps of the attempt before. And torch ends the process if it cannot make its pipe: so
`pardbg run` names one in a folder that is everywhere, and it is moved where only the job's user can reach it. What the user
has set is left alone.
"""

import os
import re
from collections.abc import Mapping, MutableMapping

from .folder import make_private
from .places import JOB_VARIABLE, attempt_folder, disk_root, dump_prefix, job_folder

DUMP_VARIABLES = ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")
PIPE_VARIABLE = "TORCH_NCCL_DEBUG_INFO_PIPE_FILE"
_JOB_VARIABLES = (JOB_VARIABLE, "TORCHELASTIC_RUN_ID", "SLURM_JOB_ID")
_UNNAMED = "unnamed"
_OWN_PIPE = re.compile(r"/tmp/pardbg-\d+-[0-9a-f]{16}-")  # noqa: S108 - recognised, not made


def pipe_stem(uid: int, token: str) -> str:
    """The stem that `pardbg run` gives: in a folder that is there on every host, by a name that nobody can guess."""
    return f"/tmp/pardbg-{uid}-{token}-"  # noqa: S108


def make_attempt_folder(environment: Mapping[str, str], attempt: int) -> str:
    """Makes the folder of this attempt on the disk, and those above it.

    Raises:
        OSError: if one of them cannot be made, or is not ours.
    """
    job = next((environment[name] for name in _JOB_VARIABLES if environment.get(name)), _UNNAMED)
    root = disk_root(os.geteuid(), environment)
    whole = job_folder(root, job)
    folder = attempt_folder(whole, attempt)
    for path in (root, whole, folder):
        make_private(path)
    return folder


def move_dumps(environment: MutableMapping[str, str], folder: str) -> None:
    """Points torch's dumps from the job's folder to that of the attempt."""
    for name in DUMP_VARIABLES:
        if environment.get(name) == dump_prefix(os.path.dirname(folder)):
            environment[name] = dump_prefix(folder)


def move_pipe(environment: MutableMapping[str, str], folder: str) -> None:
    """Points torch's dump pipe into a folder of our own."""
    if _OWN_PIPE.fullmatch(environment.get(PIPE_VARIABLE, "")):
        environment[PIPE_VARIABLE] = os.path.join(folder, "pipe_rank_")
