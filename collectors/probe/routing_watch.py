"""The way in for `routing/`, which needs all of torch: loaded when the first model is made, it begins with the first group.

Cost: 1 us for each module that is put into another; some 10 ms once, and where it was imported after torch some 100 ms for a
million objects (`find_made`). ``PARDBG_ROUTING=0`` switches it off.
"""

import os
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from .harmless import harmless, note
from .steps import Ledger, Steps

if TYPE_CHECKING:
    from .routing.watching import Routers

SWITCH = "PARDBG_ROUTING"
SWITCHED_OFF = f"{SWITCH}=0: routing is not counted"


class RoutingWatch:
    """What one process does to hear of routers, whatever is imported first."""

    def __init__(self) -> None:
        self._routers: Routers | None = None
        self._hooks: dict[int, Any] = {}
        self._key = -1
        self._is_late = False

    def listen(self, modules: ModuleType) -> None:
        """Hears of every module that is put into another one from now on."""
        if os.environ.get(SWITCH) != "0":
            self._hooks = modules._global_module_registration_hooks  # noqa: SLF001 - to be changed while torch walks through them
            self._key = modules.register_module_module_registration_hook(harmless(self._see_first)).id
            self._is_late = _is_whole(sys.modules.get("torch"))

    def listen_to_compiler(self, handler: Any) -> None:
        """Makes everything ready before something is compiled: a compiled hook can make nothing."""
        handler.register_start_callback(harmless(lambda *_: self._routers.prepare() if self._routers else None))

    def start(self, steps: Steps, path: str, ledger: Ledger, here: list[int]) -> None:
        """Counts from now on, and publishes after each step. Call it before steps are listened to."""
        if os.environ.get(SWITCH) == "0":
            note(SWITCHED_OFF)
            return
        routers = self._load()
        if self._is_late:  # models may have been made before
            harmless(routers.find_made)()
        routers.start(path, ledger, here)
        steps.routers, steps.end_routing, steps.see_step = routers.layers, routers.end_step, routers.note_step

    def _see_first(self, parent: Any, name: str, module: Any) -> None:
        """Gives its place to the hook that a compiler understands, as soon as there is all of torch."""
        if _is_whole(sys.modules.get("torch")):
            self._hooks[self._key] = see = self._load().make_hook()
            see(parent, name, module)

    def _load(self) -> "Routers":
        from .routing.reporting import routers  # noqa: PLC0415 - see above
        from .routing.watching import Routers  # noqa: PLC0415

        if self._routers is None:
            self._routers = Routers()
            routers[:] = [self._routers]
        return self._routers


def _is_whole(torch: ModuleType | None) -> bool:
    """Whether its import is over."""
    return torch is not None and not getattr(torch.__spec__, "_initializing", False)
