"""Loads pardbg's probe into a Python that starts as a rank, then the `sitecustomize` that this one stands in front of.

Python runs it at every start, whatever the version, so it is written for all of them. In a process that is no rank it looks at
the environment and does nothing.
"""

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
_PROBE = "_pardbg_probe"
_LAUNCHED = (
    "RANK",
    "SLURM_PROCID",
    "OMPI_COMM_WORLD_RANK",
    "PMI_RANK",
    "PMIX_RANK",
)  # the last four: RANK is set by the script


def _load_probe():
    """Once: where two installations stand in the path, the first one's."""
    if sys.version_info < (3, 10) or os.environ.get("PARDBG_PROBE") == "0" or _PROBE in sys.modules:
        return
    if any(name in os.environ for name in _LAUNCHED):
        from _frozen_importlib import _load
        from _frozen_importlib_external import spec_from_file_location

        folder = os.path.dirname(_HERE)
        location = os.path.join(folder, "__init__.py")
        _load(spec_from_file_location(_PROBE, location, submodule_search_locations=[folder]))
        __import__(_PROBE + ".start")
        sys.modules[_PROBE + ".start"].arm()


def _run_next():
    """What it raises, `site` reports, as it would without us. Only what stands behind us counts: it may be another of us."""
    is_us = [os.path.abspath(entry or ".") == _HERE for entry in sys.path]
    behind = is_us.index(True) + 1 if True in is_us else 0
    path = [entry for entry in sys.path[behind:] if os.path.abspath(entry or ".") != _HERE]
    try:
        from _frozen_importlib import _load
        from _frozen_importlib_external import PathFinder
    except ImportError:  # before Python 3.5
        import imp

        found = imp.find_module("sitecustomize", path)
        sys.modules.pop("sitecustomize", None)
        imp.load_module("sitecustomize", *found)
        return
    spec = PathFinder.find_spec("sitecustomize", path)
    if spec is not None:
        sys.modules.pop("sitecustomize", None)  # old loaders would run it in our place
        _load(spec)


try:
    _load_probe()
except Exception:  # whatever is wrong with us, training must not notice
    sys.modules.pop(_PROBE, None)
_run_next()
