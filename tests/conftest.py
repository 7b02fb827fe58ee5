"""Which tests share a worker: those of one file, where real processes serve several of them; planted jobs serve more."""

import pytest

TOGETHER = {
    "tests/live/test_real_dumps.py": "planted",
    "tests/live/test_verdicts.py": "planted",
    "tests/live/test_launch.py": "planted",
}
APART = ("tests/live/test_scan", "tests/live/test_crashes", "tests/live/test_demo_command")  # a job of its own each


@pytest.hookimpl(tryfirst=True)  # xdist, which comes before us where paths are given, looks at the marks in its own
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """For ``-n 2 --dist loadgroup``. Where tests are not live, or have a job each, anybody may take them."""
    for item in items:
        file = item.nodeid.partition("::")[0]
        has_own = item.get_closest_marker("xdist_group") is not None
        if item.get_closest_marker("live") and not has_own and not file.startswith(APART):
            item.add_marker(pytest.mark.xdist_group(TOGETHER.get(file, file)))
