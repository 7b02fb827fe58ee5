"""File names as py-spy's text gives them: without the folders above the outermost package.

``/opt/venv/lib/python3.11/site-packages/ray/_private/worker.py`` becomes ``ray/_private/worker.py``, the standard library's
``/usr/lib/python3.11/threading.py`` becomes ``threading.py``, and ``/root/code/engine.py``, in no package, ``engine.py``.
So a short name says less than a long one: whose it is follows from its first part, and it may be the name of many files.
"""

import re
from collections.abc import Collection
from functools import lru_cache

from pardbg.watchdog.model.packages import INSTALLED, NAMESPACES, STANDARD
from pardbg.watchdog.model.summary import Function

_BELOW = re.compile(r".*/(?:(?P<installed>site-packages|dist-packages)|lib/python3[.\d]*)/")
_INSTALLED, _STANDARD = "site-packages/", "lib/python3/"


def is_short(filename: str) -> bool:
    """Whether a name lacks the folders it lies in; ``<string>`` and its like are whole."""
    return not filename.startswith(("/", "<"))


def is_of_library(filename: str) -> bool:
    """Whether a short name is of a known library, or of Python itself."""
    return plain_name(filename).startswith((_INSTALLED, _STANDARD))


def is_standard(filename: str) -> bool:
    """Whether a file is of Python itself."""
    return plain_name(filename).startswith(_STANDARD) or filename.startswith("<frozen ")


@lru_cache(maxsize=4096)
def plain_name(filename: str) -> str:
    """What patterns for file names look at: where a library lies on this machine is left out, short names are made alike.

    ``site-packages/torch/storage.py`` and ``lib/python3/threading.py``, whatever stands before; other files as they are.
    An environment below ``/home/ray`` is no sign of Ray.
    """
    if (found := _BELOW.match(filename)) is not None:
        return (_INSTALLED if found["installed"] else _STANDARD) + filename[found.end() :]
    top, slash, _ = filename.partition("/")
    if slash:
        return _INSTALLED * (top in INSTALLED) + _STANDARD * (top in STANDARD) + filename
    return _STANDARD * (filename.removesuffix(".py") in STANDARD) + filename


def may_be_same_file(one: str, other: str) -> bool:
    """Whether two names can be of one file: they are equal, or one is short and the other, which is longer, ends with it.

    A short name begins with a package. So ``engine.py`` may be ``/root/code/engine.py``, but not
    ``.../site-packages/deepspeed/runtime/engine.py``: that would be ``deepspeed/runtime/engine.py``.
    """
    if one == other:
        return True
    short, long = sorted((one, other), key=len)
    if not is_short(short) or not long.endswith(f"/{short}"):
        return False
    if (found := _BELOW.match(long)) is None:
        return True
    inside = long[found.end() :]
    return short == inside or any(inside == f"{above}/{short}" for above in NAMESPACES)


def holds_function(functions: Collection[Function], function: Function) -> bool:
    """Whether a function is among others, as far as names of files tell: a short one is equal to any that it may be."""
    if function in functions:
        return True
    filename, name = function
    return any(name == known and may_be_same_file(filename, path) for path, known in functions)
