"""`import pardbg.probe` in a training program: what `pardbg run` does from outside, for those who prefer it in the code.

Before or after torch is imported, but before the first process group is made. It does nothing in a process without RANK. What
only the environment can switch on - the size of the flight recorder - is left as it is.
"""

import importlib
import importlib.util
import sys
from pathlib import Path

_NAME = "_pardbg_probe"


def _load() -> None:
    """Loads the one package that `pardbg run` would have loaded, by the same name: twice it must not be there."""
    if _NAME not in sys.modules:
        folder = Path(__file__).resolve().parent / "collectors" / "probe"
        spec = importlib.util.spec_from_file_location(_NAME, folder / "__init__.py", submodule_search_locations=[str(folder)])
        if spec is None or spec.loader is None:
            return
        sys.modules[_NAME] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    importlib.import_module(f"{_NAME}.start").arm()


_load()
