"""How much memory a child may take for one file: in proportion to its size, so that a small file cannot ask for a lot."""

import contextlib
import resource

LARGEST_MEMORY_BYTES = 6 * 1024**3
_SPARE_MEMORY_BYTES = 512 * 1024**2
_MEMORY_PER_FILE_BYTE = 48  # a parsed entry takes 10 to 20 times its pickled size


def limit_memory(file_bytes: int) -> None:
    """Sets this process's address space limit for a file of that size.

    Only the soft limit is moved, within the inherited hard one, so that the next file can have another.
    """
    allowed = min(LARGEST_MEMORY_BYTES, _SPARE_MEMORY_BYTES + _MEMORY_PER_FILE_BYTE * file_bytes)
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    if hard != resource.RLIM_INFINITY:
        allowed = min(allowed, hard)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (allowed, hard))
