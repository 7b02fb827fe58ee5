"""Which file a command means, found as a shell finds it."""

import os
from pathlib import Path

from pardbg.watchdog.errors import InputError

_INTERPRETERS = {".py": "python", ".sh": "bash", ".bash": "bash"}


def find_program(word: str, search_path: str) -> str:
    """The first executable file of that name.

    Args:
        word: the command as typed; with a slash it is the file itself.
        search_path: ``PATH``; an empty part means the current folder.

    Raises:
        InputError: if there is none.
    """
    candidates = [word] if "/" in word else [f"{folder or '.'}/{word}" for folder in search_path.split(":") if word]
    files = [candidate for candidate in candidates if Path(candidate).is_file()]
    found = next((file for file in files if os.access(file, os.X_OK)), None)
    if found is not None:
        return found
    if files:
        raise InputError(f"{files[0]} is not executable", remedy=_how_to_start(files[0]))
    if "/" in word:
        raise InputError(f"{word} is {'a folder' if Path(word).is_dir() else 'not there'}", remedy="name a program")
    if word and Path(word).is_file():
        raise InputError(f"{word} is not in PATH, but in this folder", remedy=_how_to_start(f"./{word}"))
    raise InputError(
        f"no program {word!r} in PATH",
        remedy="activate its environment, or give its whole path; bash -c '...' runs what only a shell knows",
    )


def explain_failed_start(program: str, error: OSError) -> InputError:
    """What is wrong with a file that looked like a program."""
    if isinstance(error, FileNotFoundError) and Path(program).is_file():
        return InputError(f"{program} names an interpreter that is not there", remedy="look at its first line")
    reason = error.strerror or str(error)
    return InputError(f"cannot start {program}: {reason}", remedy=_how_to_start(program))


def _how_to_start(file: str) -> str:
    interpreter = _INTERPRETERS.get(Path(file).suffix)
    if interpreter:
        return f"try pardbg run -- {interpreter} {file}"
    return (
        f"if it is a script, name its interpreter (pardbg run -- bash {file}); if a program, see that it may be executed here"
    )
