"""Shared places and limits of the collectors' tests."""

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

REAL_DUMPS = Path(__file__).parents[3] / "shared" / "cases" / "nvrx"


@pytest.fixture(scope="session")
def real_dumps() -> list[Path]:
    """Dumps of real jobs, in a fixed order."""
    found = sorted(REAL_DUMPS.glob("*/_dump_*"))
    if not found:
        pytest.skip(f"no recorded cases in {REAL_DUMPS}")
    return found


@pytest.fixture
def memory_limit() -> Iterator[None]:
    """What `reading_child.py` does: a mutated byte can ask the unpickler for a table of many gigabytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 1024**3, hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
