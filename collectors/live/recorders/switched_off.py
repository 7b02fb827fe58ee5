"""Whether a rank's recorder is off, by its environment or by the version of torch that it runs: pure but for one small file.

Cost: one read of torch's `version.py`. Its default size was 0 before torch 2.11.
"""

import os
import re
from collections.abc import Mapping

from pardbg.collectors.live.recorders.trusted_file import RefusedError, read_file

REMEDY = "start the job with `pardbg run`, or with TORCH_FR_BUFFER_SIZE=2000 (torch before 2.8: TORCH_NCCL_TRACE_BUFFER_SIZE)"
_SIZE_VARIABLES = ("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE", "TORCH_TRACE_BUFFER_SIZE")
_FIRST_ON = (2, 11)
_LIBRARY = re.compile(r"^\S+ \S+ \S+ \S+ \S+\s+(/.*)/torch/lib/libtorch_cpu\.so$", re.MULTILINE)
_VERSION = re.compile(rb"^__version__\s*(?::[^=]*)?=\s*['\"](\d+)\.(\d+)", re.MULTILINE)


def is_off_by_environment(environment: Mapping[str, bytes]) -> bool:
    """Whether every size that is given is 0. Which of the names counts depends on torch's version."""
    sizes = [environment[name].strip() for name in _SIZE_VARIABLES if name in environment]
    return bool(sizes) and all(re.fullmatch(rb"0+|-\d+", size) for size in sizes)


def is_off_by_default(environment: Mapping[str, bytes], version: tuple[int, int] | None) -> bool:
    """Whether nobody has switched it on in a torch that leaves it off."""
    return version is not None and version < _FIRST_ON and not any(name in environment for name in _SIZE_VARIABLES)


def find_torch(memory_map: str) -> bytes | None:
    """The file that names the version of the torch that a process has mapped."""
    match = _LIBRARY.search(memory_map)
    return os.fsencode(f"{match[1]}/torch/version.py") if match else None


def parse_version(text: bytes) -> tuple[int, int] | None:
    """Major and minor number from torch's `version.py`."""
    match = _VERSION.search(text)
    return (int(match[1]), int(match[2])) if match else None


def read_version(memory_map: str, root: int | None = None) -> tuple[int, int] | None:
    """The version of torch that a process has mapped, None if that cannot be seen.

    Args:
        memory_map: of the process.
        root: a handle of its root, if it lives in another mount namespace (`rank_root.py`).
    """
    path = find_torch(memory_map)
    try:
        return parse_version(read_file(path, None, root=root)[0]) if path else None
    except (RefusedError, OSError):
        return None
