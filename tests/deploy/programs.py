"""Programs that tests here run: those that pip has put beside our Python come first."""

import os
import shutil
import sys
from pathlib import Path

import pytest


def program(name: str, package: str) -> str:
    """Its path; skips the test, saying which package has it, where it is not installed."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    return shutil.which(name, path=path) or pytest.skip(f"no {name}: install {package}")
