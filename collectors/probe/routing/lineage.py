"""Where a router stands in its model: its qualified name, and the number of its layer.

Who is put into whom is noted for every module, since lists of layers are filled after they were put into the model; the first
pass of a router asks for the way up. Cost: 1 us and 200 bytes a module. Names that wrappers add (of the compiler, of FSDP, of
checkpoints, of DDP) are left out.
"""

import re
import weakref
from collections.abc import Iterable, Sequence
from typing import Any

_WRAPPERS = frozenset({"_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module", "_forward_module"})
_NUMBER = re.compile(r"(?:^|\.)(\d+)(?=\.|$)")
_MOST_LEVELS = 64
_MOST_PARENTS = 8
_MOST_AT_FIRST = 10_000


class Lineage:
    """Which module was put into which."""

    def __init__(self) -> None:
        self._parents: dict[int, tuple[Any, list[Any]]] = {}
        self._most = _MOST_AT_FIRST

    def note(self, parent: Any, child: Any) -> None:
        """Now and then those that are gone are forgotten. A child may have several parents: a part of a list is a list."""
        own, parents = self._parents.get(id(child), (None, []))
        if own is None or own() is not child:
            self._parents[id(child)] = weakref.ref(child), [weakref.ref(parent)]
        else:
            parents[:] = [other for other in parents if other() is not None][:_MOST_PARENTS]
            parents.append(weakref.ref(parent))
        if len(self._parents) > self._most:
            self._parents = {key: pair for key, pair in self._parents.items() if pair[0]() is not None}
            self._most = max(_MOST_AT_FIRST, 2 * len(self._parents))

    def parent_of(self, module: Any) -> Any:
        """What holds the module, the first of several; None if nothing does."""
        own, parents = self._parents.get(id(module), (None, []))
        if own is None or own() is not module:
            return None
        alive = (parent() for parent in parents)
        return next((parent for parent in alive if parent is not None and _holds(parent, module)), None)

    def root_of(self, module: Any) -> Any:
        """The outermost module that holds this one."""
        for _ in range(_MOST_LEVELS):
            parent = self.parent_of(module)
            if parent is None:
                break
            module = parent
        return module


def _holds(parent: Any, module: Any) -> bool:
    return any(part is module for part in parent._modules.values())  # noqa: SLF001 - what `children` shows, once each


def strip_name(name: str) -> str:
    """The name as the model's author knows it."""
    parts = [part for part in name.split(".") if part not in _WRAPPERS]
    while parts and parts[0] == "module":
        del parts[0]
    return ".".join(parts)


def number_layers(names: Sequence[str], told: Sequence[int | None], taken: Iterable[int]) -> list[int]:
    """A number for each router: what it says itself, else the first one in its name, else its place. None twice.

    Args:
        names: qualified.
        told: the layer number that the router carries, from 0 on, where it does.
        taken: numbers of layers that were found earlier.
    """
    used = set(taken)
    numbers = []
    for place, (name, own) in enumerate(zip(names, told, strict=True)):
        found = _NUMBER.search(name)
        wanted = own if own is not None else int(found[1]) if found else place
        if wanted in used or not 0 <= wanted < 2**31 - 1:
            wanted = max(used, default=-1) + 1
        used.add(wanted)
        numbers.append(wanted)
    return numbers
