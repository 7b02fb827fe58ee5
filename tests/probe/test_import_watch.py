"""A watch for imports hears of its modules and leaves everybody else's alone."""

import importlib
import sys
from collections.abc import Iterator
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest

from pardbg.collectors.probe.import_watch import when_imported


@pytest.fixture(autouse=True)
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of modules to import; what was imported is forgotten."""
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_listeners_are_called_after_their_modules_in_any_order(modules: Path) -> None:
    for name in ("watched_a", "watched_b", "other"):
        (modules / f"{name}.py").write_text("value = 1\n")
    heard: list[tuple[str, int]] = []
    finders = list(sys.meta_path)
    when_imported({name: lambda module: heard.append((module.__name__, module.value)) for name in ("watched_a", "watched_b")})
    for name in ("other", "watched_b", "watched_a"):
        importlib.import_module(name)
    assert heard == [("watched_b", 1), ("watched_a", 1)]
    assert sys.meta_path == finders
    spec = sys.modules["watched_a"].__spec__
    assert spec is not None
    assert "exec_module" not in vars(spec.loader)


def test_what_is_there_already_is_told_at_once() -> None:
    heard: list[ModuleType] = []
    when_imported({"json": heard.append})
    assert heard == [sys.modules["json"]]


def test_a_module_without_a_spec_is_no_reason_to_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    bare = ModuleType("bare")
    del bare.__spec__
    monkeypatch.setitem(sys.modules, "bare", bare)
    heard: list[ModuleType] = []
    when_imported({"bare": heard.append})
    assert heard == [bare]


def test_a_listener_that_fails_does_not_fail_the_import(modules: Path) -> None:
    (modules / "watched.py").write_text("value = 1\n")
    when_imported({"watched": lambda _module: next(iter(()))})
    assert importlib.import_module("watched").value == 1


def test_an_error_of_the_module_is_the_importers(modules: Path) -> None:
    (modules / "watched.py").write_text("1 / 0\n")
    heard: list[ModuleType] = []
    when_imported({"watched": heard.append})
    with pytest.raises(ZeroDivisionError):
        importlib.import_module("watched")
    assert heard == []
    assert "watched" not in sys.modules


def test_a_module_that_is_not_there_is_not_found_as_ever() -> None:
    when_imported({"no_such_module": lambda _module: None})
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        importlib.import_module("no_such_module")


def test_finders_of_others_before_and_behind_are_asked_and_loaders_stay_theirs(modules: Path) -> None:
    (modules / "watched.py").write_text("value = 1\n")

    class Special(MetaPathFinder, Loader):
        def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
            del path, target
            return ModuleSpec(name, self) if name == "watched" else None

        def exec_module(self, module: ModuleType) -> None:
            module.value = 2  # type: ignore[attr-defined]

    heard: list[int] = []
    when_imported({"watched": lambda module: heard.append(module.value)})
    special = Special()
    sys.meta_path.insert(1, special)
    module = importlib.import_module("watched")
    assert heard == [2]
    assert module.__loader__ is special
    assert vars(special) == {}


def test_a_watch_that_somebody_has_taken_out_of_the_list_still_works(modules: Path) -> None:
    """Wrappers of finders keep it, and call it."""
    (modules / "watched.py").write_text("value = 1\n")
    heard: list[ModuleType] = []
    when_imported({"watched": heard.append})
    watch = sys.meta_path.pop(0)

    class Wrapper(MetaPathFinder):
        def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
            found: ModuleSpec | None = watch.find_spec(name, path, target)  # type: ignore[arg-type]
            return found

    sys.meta_path.insert(0, Wrapper())
    assert importlib.import_module("watched").value == 1
    assert len(heard) == 1
