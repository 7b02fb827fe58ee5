"""Loads pardbg's probe into a Python that starts as a rank, then the `sitecustomize` that this one stands in front of.

Python runs it at every start, whatever the version, so it is written for all of them. In a process that is no rank it looks at
the environment and does nothing.
"""

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
_LAUNCHED = (
    "RANK",
    "SLURM_PROCID",
    "OMPI_COMM_WORLD_RANK",
    "PMI_RANK",
    "PMIX_RANK",
)  # the last four: RANK is set by the script


def _load_probe():
    if sys.version_info < (3, 10) or os.environ.get("PARDBG_PROBE") == "0":
        return
    if any(name in os.environ for name in _LAUNCHED):
        import importlib.util

        folder = os.path.dirname(_HERE)
        name = "_pardbg_probe"
        location = os.path.join(folder, "__init__.py")
        spec = importlib.util.spec_from_file_location(name, location, submodule_search_locations=[folder])
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        importlib.import_module(name + ".start").arm()


def _run_next():
    """What it raises, `site` reports, as it would without us."""
    path = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]
    try:
        from _frozen_importlib import module_from_spec
        from _frozen_importlib_external import PathFinder
    except ImportError:  # before Python 3.5
        import imp

        found = imp.find_module("sitecustomize", path)
        sys.modules.pop("sitecustomize", None)
        imp.load_module("sitecustomize", *found)
        return
    spec = PathFinder.find_spec("sitecustomize", path)
    if spec is not None and spec.loader is not None:
        sys.modules["sitecustomize"] = module = module_from_spec(spec)
        spec.loader.exec_module(module)


try:
    _load_probe()
except Exception:  # whatever is wrong with us, training must not notice
    sys.modules.pop("_pardbg_probe", None)
_run_next()
