"""From which functions of the training code a rank issues its operations."""

from collections import Counter

from pardbg.watchdog.model.recording import Recording
from pardbg.watchdog.model.summary import Function

RECENT_OPERATIONS = 64


def issuing_functions(recording: Recording) -> frozenset[Function]:
    """All functions of the training code that are on the stack when an operation is issued."""
    if recording.summary is not None:
        return frozenset((path, name) for path, names in recording.summary.functions for name in names)
    return frozenset(frame.function for site in recording.sites for frame in site if not frame.is_library)


def loop_function(recording: Recording) -> Function | None:
    """The innermost function that is on the stack of all of the last collectives; None if that is not known.

    Only places that issued more than one of them count: what happens once is no loop.
    """
    if recording.summary is not None:
        return recording.summary.loop_function
    recent = Counter(operation.site for operation in recording.operations[-RECENT_OPERATIONS:] if not operation.is_p2p)
    sites = [
        [frame.function for frame in reversed(recording.sites[site]) if not frame.is_library]
        for site, count in recent.items()
        if site >= 0 and count > 1
    ]
    if not sites or not all(sites):
        return None
    shared = [functions[0] for functions in zip(*sites, strict=False) if len(set(functions)) == 1]
    return shared[-1] if shared else None
