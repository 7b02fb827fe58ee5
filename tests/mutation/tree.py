"""A copy of the repository in which a rule can be broken, and tests run against it: one process each time."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.mutation.edit import ROOT, Edit

FOLDERS = ("src", "watchdog", "collectors", "dashboards", "deploy", "tests")
PASSED, FAILED = 0, 1  # what pytest exits with; more means that it could not run them


class Tree:
    """The copy, in an empty folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in FOLDERS:
            shutil.copytree(ROOT / name, folder / name, symlinks=True)
        shutil.copy2(ROOT / "pyproject.toml", folder)

    @contextmanager
    def without(self, edit: Edit) -> Iterator[None]:
        """The rule is broken meanwhile."""
        path = self.folder / edit.file
        text, times = path.read_text(encoding="utf-8"), path.stat()
        path.write_text(edit.apply(text), encoding="utf-8")
        try:
            yield
        finally:
            path.write_text(text, encoding="utf-8")
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # what is compiled is known by its time

    def run(self, tests: Iterable[str]) -> tuple[int, str]:
        """The exit code of pytest, and what it printed last."""
        command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", "--tb=no", *tests]
        imports = {"PYTHONPATH": str(self.folder / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            command, cwd=self.folder, env={**os.environ, **imports}, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout[-500:] + done.stderr[-500:]
