"""Keeps what the flight recorder holds when a rank ends.

Cost: 0.3 s for 20,000 operations, 2 MB on the disk. To find call sites torch asks `torch._inductor`, and where nobody has
imported it that takes a second or two: a stand-in that knows nothing answers for it. NCCL's recorder also looks at events of
the device, which must be alive: it is only asked after an exception, while the groups are there.
"""

import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from .folder import write_whole

_COMPILER = "torch._inductor"
_CODE_CACHE = "torch._inductor.codecache"
_ENTRY = b"record_id"


def keep_last_dump(path: str, c10d: ModuleType, bindings: ModuleType, *, has_failed: bool) -> None:
    """Writes the dump of the recorder that has entries; nothing if none has.

    Args:
        path: where to.
        c10d: ``torch.distributed.distributed_c10d``.
        bindings: ``torch._C._distributed_c10d``.
        has_failed: whether the rank ends with an exception.
    """
    names = ["_dump_fr_trace"]
    if has_failed and c10d.is_initialized():
        names.insert(0, "_dump_nccl_trace")
    for name in names:
        dump = getattr(bindings, name, None)
        data = _dump(dump) if dump is not None else b""
        if _ENTRY in data:
            write_whole(path, data)
            return


def _dump(dump: Callable[..., bytes]) -> bytes:
    with _standing_in():
        try:
            return dump(includeCollectives=True, includeStackTraces=True, onlyActive=False)
        except TypeError:  # an older one
            return dump()


@contextmanager
def _standing_in() -> Iterator[None]:
    if _COMPILER in sys.modules:
        yield
        return
    package: Any = types.ModuleType(_COMPILER)
    module: Any = types.ModuleType(_CODE_CACHE)
    package.__path__, package.codecache, module.PyCodeCache = [], module, _NoCode
    sys.modules.update({_COMPILER: package, _CODE_CACHE: module})
    try:
        yield
    finally:
        for name in (_COMPILER, _CODE_CACHE):
            sys.modules.pop(name, None)


class _NoCode:
    """A cache without any compiled code."""

    @staticmethod
    def stack_frames_for_code(_path: str, _line: int) -> None:
        """Nothing is known of any line."""
