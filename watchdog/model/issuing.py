"""From which functions of the training code a rank issues its operations."""

import re
from collections import Counter
from itertools import pairwise

from pardbg.watchdog.model.recording import Recording
from pardbg.watchdog.model.summary import Function

RECENT_OPERATIONS = 64

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_LOOPS = frozenset({"train", "training", "trainer", "pretrain", "finetune", "fit", "epoch", "epochs", "loop", "learn"})
_PARTS = frozenset(
    {
        *("step", "steps", "batch", "microbatch", "iter", "iteration", "forward", "backward", "update"),
        *("hook", "on", "start", "end", "log", "init", "setup", "save", "load"),
    }
)


def issuing_functions(recording: Recording) -> frozenset[Function]:
    """All functions of the training code that are on the stack when an operation is issued."""
    if recording.summary is not None:
        return frozenset((path, name) for path, names in recording.summary.functions for name in names)
    return frozenset(frame.function for site in recording.sites for frame in site if not frame.is_library)


def loop_function(recording: Recording) -> Function | None:
    """The innermost function on the stack of all of the last collectives that holds the loop; None if that is not known.

    The innermost of all is often a mere part of one step: a hook, or the one layer that the newest operations came from. So
    its name must say that it loops; else it is what the program itself calls, outside of which there is no training.
    Only places that issued more than one of them count: what happens once is no loop.
    """
    if recording.summary is not None:
        return recording.summary.loop_function
    recent = Counter(operation.site for operation in recording.operations[-RECENT_OPERATIONS:] if not operation.is_p2p)
    sites = [recording.sites[site][::-1] for site, count in recent.items() if site >= 0 and count > 1]
    if not sites or not all(sites):
        return None
    shared = [frames[0] for frames in zip(*sites, strict=False) if len({frame.function for frame in frames}) == 1]
    looping = [frame for frame in shared if not frame.is_library and _is_loop(frame.bare_name)]
    called = (frame for program, frame in pairwise(shared) if program.name == "<module>" and not frame.is_library)
    return next((frame.function for frame in (*looping[::-1], *called)), None)


def _is_loop(name: str) -> bool:
    """Whether a name says that the function holds a training loop: ``train_one_epoch``, ``fit``, but not ``train_step``."""
    words = {word.lower() for word in _WORD.findall(name)}
    return bool(words & _LOOPS) and not words & _PARTS
