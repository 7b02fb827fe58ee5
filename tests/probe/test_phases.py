"""Phases are on the page while they last, and wrapped functions are as before."""

import inspect
import pickle
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pardbg.collectors.probe.page import Page
from pardbg.collectors.probe.page_format import PhaseRecord, decode_record
from pardbg.collectors.probe.phases import CHECKPOINT, COMPILE, EVALUATION, Phases
from pardbg.collectors.probe.steps import Ledger


class Desk:
    """Phases of a page that can be read; ``is_ours`` is what they are told."""

    def __init__(self, folder: Path) -> None:
        self.ledger = Ledger()
        self.is_ours = True
        self._path = folder / "page"
        self.phases = Phases(Page(str(self._path)), self.ledger, lambda: self.is_ours)

    def read(self) -> tuple[int, bytes] | None:
        """How many phases are nested, and the one to name."""
        record = decode_record(PhaseRecord, self._path.read_bytes())
        assert record is None or isinstance(record, PhaseRecord)
        return (record.depth, record.name) if record is not None else None


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A package that shows a function of another module, as `torch.save` is one of `torch.serialization`."""
    home: Any = ModuleType("library_home")
    exec("def save(value, *, file=None):\n    'Saves.'\n    return look(value)\n", vars(home))  # noqa: S102
    front: Any = ModuleType("library")
    front.save, front.home = home.save, home
    for module in (home, front):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return front


def test_a_phase_lasts_as_long_as_its_function(desk: Desk, library: Any) -> None:
    library.home.look = lambda value: (value, desk.read())
    desk.phases.wrap(library, "save", CHECKPOINT)
    assert library.save(5) == (5, (1, CHECKPOINT))
    assert desk.read() == (0, b"")
    assert desk.ledger.hook_count == 2


def test_an_error_of_the_function_goes_through_and_ends_the_phase(desk: Desk, library: Any) -> None:
    library.home.look = lambda value: 1 / value
    desk.phases.wrap(library, "save", CHECKPOINT)
    with pytest.raises(ZeroDivisionError):
        library.save(0)
    assert desk.read() == (0, b"")


def test_a_wrapped_function_looks_and_pickles_as_before(desk: Desk, library: Any) -> None:
    before = inspect.signature(library.save)
    desk.phases.wrap(library, "save", CHECKPOINT)
    assert (inspect.signature(library.save), library.save.__doc__) == (before, "Saves.")
    assert pickle.loads(pickle.dumps(library.save)) is library.save


def test_the_outermost_phase_is_named_but_for_evaluation(desk: Desk) -> None:
    enter, leave = desk.phases._enter, desk.phases._leave
    seen = []
    for change, phase in ((enter, CHECKPOINT), (enter, COMPILE), (leave, COMPILE), (leave, CHECKPOINT)):
        change(phase)
        seen.append(desk.read())
    assert [name for record in seen if record for name in record[1:]] == [CHECKPOINT, CHECKPOINT, CHECKPOINT, b""]
    enter(EVALUATION)
    enter(CHECKPOINT)
    assert desk.read() == (2, CHECKPOINT)
    leave(CHECKPOINT)
    desk.phases.end_evaluation()
    assert desk.read() == (0, b"")


def test_other_threads_and_forked_children_write_nothing(desk: Desk) -> None:
    thread = threading.Thread(target=desk.phases._enter, args=(CHECKPOINT,))
    thread.start()
    thread.join()
    desk.is_ours = False
    desk.phases._enter(CHECKPOINT)
    assert desk.read() is None


def test_unmatched_ends_and_endless_begins_do_no_harm(desk: Desk) -> None:
    desk.phases._leave(CHECKPOINT)
    for _ in range(10_000):
        desk.phases._enter(COMPILE)
    assert len(desk.phases.stack) < 200
