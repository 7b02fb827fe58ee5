"""Copies the evidence of an incident to where somebody may work with it."""

import shutil
from pathlib import Path

from pardbg.watchdog.errors import InputError, PardbgError


def export_evidence(evidence: Path, target: Path) -> int:
    """Copies a folder, links as links, and says how many files there are.

    Raises:
        InputError: if there is something at the target.
        PardbgError: if not all could be copied.
    """
    try:
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise InputError(f"{target} is not an empty folder", remedy="name another one")
        shutil.copytree(evidence, target, symlinks=True, dirs_exist_ok=True)
    except shutil.Error as error:
        first = error.args[0][0]
        raise PardbgError(f"{first[0]} could not be copied: {first[2]}", remedy="look at the disk; then try again") from error
    return sum(1 for path in target.rglob("*") if path.is_file() and not path.is_symlink())
