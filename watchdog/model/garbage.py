"""The search for cyclic garbage, left alone while much is built that stays: in a large job it takes as long as the work."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """For a ``with``, or as a decorator. What is counted by reference is freed as ever."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
