"""As many open files as a conversation with many nodes needs."""

import resource

_SPARE = 128


def allow_descriptors(count: int) -> int:
    """Raises this process's limit to ``count`` and some more, as far as it may be raised; returns how many there may be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = count + _SPARE
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return count
    allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return max(allowed - _SPARE, 1)
