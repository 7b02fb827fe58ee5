"""Where a rank's environment makes torch put dumps and their trigger: pure.

A dump is ``<prefix><rank>``, a trigger ``<value><rank>.pipe``. The default prefix has moved with the versions of torch.
"""

import os
from collections.abc import Mapping

from pardbg.collectors.probe.recorder_places import DUMP_VARIABLES, PIPE_VARIABLE
from pardbg.collectors.walking import is_elsewhere
from pardbg.watchdog.model.base import Noun

_PIPE_VARIABLES = (PIPE_VARIABLE, "TORCH_FR_DEBUG_INFO_PIPE_FILE")  # the second is XCCL's
_DYNAMIC_VARIABLE = "TORCH_FR_DUMP_DYNAMIC_FILE_NAME"
_DEFAULT_NAMES = (b"comm_lib_trace_rank_", b"nccl_trace_rank_")
_OLDEST_PREFIX = b"/tmp/nccl_trace_rank_"
_TRUE = frozenset({b"1", b"y", b"yes", b"t", b"true", b"on"})


class DumpPlace(Noun, frozen=True, kw_only=True):
    """A file that may be this rank's dump. ``is_named``: by the environment; all jobs of a user share the default name."""

    path: bytes
    is_named: bool


def dump_places(environment: Mapping[str, bytes], rank: int, folder: bytes, home: bytes) -> tuple[DumpPlace, ...]:
    """All places for this rank's dump.

    Args:
        environment: of the rank.
        rank: the global rank, which ends the name.
        folder: what relative names are relative to.
        home: the home folder of the rank's user.
    """
    named = next((environment[name] for name in DUMP_VARIABLES if environment.get(name)), None)
    if named is not None:
        return tuple(_places([named], rank, folder, is_named=True))
    caches = [environment.get("XDG_CACHE_HOME") or os.path.join(home, b".cache"), os.path.join(home, b".cache")]  # noqa: PTH118
    prefixes = [os.path.join(cache, b"torch", name) for cache in dict.fromkeys(caches) for name in _DEFAULT_NAMES]  # noqa: PTH118
    return tuple(_places([*prefixes, _OLDEST_PREFIX], rank, folder, is_named=False))


def pipe_path(environment: Mapping[str, bytes], rank: int, folder: bytes) -> bytes | None:
    """Where a byte asks for a dump, None if the environment asks for no such pipe."""
    stem = next((environment[name] for name in _PIPE_VARIABLES if environment.get(name)), None)
    path = None if stem is None else os.path.join(folder, stem + b"%d.pipe" % rank)  # noqa: PTH118
    return None if path is None or is_elsewhere(os.path.abspath(path)) else path  # noqa: PTH100


def has_dynamic_names(environment: Mapping[str, bytes]) -> bool:
    """Whether the names are made anew for each dump, by the job's own code, so that nobody else can know them."""
    return environment.get(_DYNAMIC_VARIABLE, b"").lower() in _TRUE


def _places(prefixes: list[bytes], rank: int, folder: bytes, *, is_named: bool) -> list[DumpPlace]:
    paths = [os.path.join(folder, prefix + b"%d" % rank) for prefix in prefixes]  # noqa: PTH118
    return [DumpPlace(path=path, is_named=is_named) for path in paths if not is_elsewhere(os.path.abspath(path))]  # noqa: PTH100
