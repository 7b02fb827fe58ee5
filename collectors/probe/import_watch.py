"""Runs a function once a module has been imported, without importing it, nor anything else."""

from __future__ import annotations

import sys

from .harmless import harmless

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

    Listener = Callable[[ModuleType], None]


def when_imported(listeners: dict[str, Listener]) -> None:
    """Calls each listener with its module after that was executed: at once for those that are there already."""
    waiting = dict(listeners)
    for name in listeners:
        module = sys.modules.get(name)
        if module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False):
            harmless(waiting.pop(name))(module)
    if waiting:
        sys.meta_path.insert(0, _Watch(waiting))


class _Watch:
    """A finder that finds nothing itself. It asks the others, and listens to the loader of what they find."""

    def __init__(self, waiting: dict[str, Listener]) -> None:
        self._waiting = waiting

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Takes the place of the finder that knows the module, for the modules that are waited for; None for all others."""
        listener = self._waiting.pop(name, None)
        if listener is None:
            return None
        if not self._waiting and self in sys.meta_path:
            sys.meta_path.remove(self)
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None) if finder is not self else None
            spec: ModuleSpec | None = find(name, path, target) if find is not None else None
            if spec is not None:
                _listen(spec, listener)
                return spec
        return None


def _listen(spec: ModuleSpec, listener: Listener) -> None:
    """Sets a function on this one loader object, so that its type and all it offers stay as they are."""
    loader = spec.loader
    execute = getattr(loader, "exec_module", None)
    if loader is None or execute is None:
        return

    def exec_module(module: ModuleType) -> None:
        del loader.exec_module
        execute(module)
        harmless(listener)(module)

    harmless(setattr)(loader, "exec_module", exec_module)
