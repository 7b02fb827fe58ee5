"""The diagnosis: model, store, correlators, judge, outputs and commands.

Import it as ``pardbg.watchdog``. PyPI has a well-known package called ``watchdog``; the guard below keeps this folder from
shadowing it when the repository root happens to be on ``sys.path``.
"""

if __name__ != "pardbg.watchdog":
    raise ImportError(
        f"this is the source folder of pardbg.watchdog, imported as {__name__!r}: import pardbg.watchdog, "
        "and set PYTHONSAFEPATH=1 (or leave the repository root) to import PyPI's watchdog"
    )
