"""Planted jobs, each run once per test session and shared by all tests that read its evidence."""

import importlib.util
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.live.recorded.faults import fault_named
from tests.live.recorded.launch import run_recorded_job

JOBS_AT_ONCE = 2  # a job is idle for a third of its 8 s; more at once only slow each other down on two cores


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here starts real jobs; without torch it is skipped with the remedy."""
    skip = pytest.mark.skip(reason="torch is not installed: pip install 'pardbg[demo]'")
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.live)
            if importlib.util.find_spec("torch") is None:
                item.add_marker(skip)


@pytest.fixture(scope="session")
def planted_job(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Path]]:
    """Gives the folder of evidence of a planted job, by the fault's name.

    Jobs that tests name in a parameter ``fault_name`` start in the background at once, two at a time; any other one starts
    when it is asked for.
    """
    jobs: dict[str, Future[Path]] = {}

    def run(name: str) -> Path:
        folder = tmp_path_factory.mktemp(name)
        run_recorded_job(fault_named(name), folder, lambda _line: None)
        return folder

    with ThreadPoolExecutor(JOBS_AT_ONCE) as pool:

        def folder_of(name: str) -> Path:
            if name not in jobs:
                jobs[name] = pool.submit(run, name)
            return jobs[name].result()

        for name in _names_in_parameters(request.session.items):
            jobs[name] = pool.submit(run, name)
        yield folder_of
        pool.shutdown(cancel_futures=True)


def _names_in_parameters(items: list[pytest.Item]) -> list[str]:
    """In the order in which the tests ask; a dict because each is wanted once."""
    names: dict[str, None] = {}
    for item in items:
        callspec = getattr(item, "callspec", None)
        if callspec is not None and "fault_name" in callspec.params:
            names[callspec.params["fault_name"]] = None
    return list(names)
