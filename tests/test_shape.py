"""The code keeps the size that people enjoy reading."""

import ast
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted(path for folder in ("watchdog", "collectors", "dashboards") for path in (ROOT / folder).rglob("*.py"))
MAX_MODULE_LINES = 400
MAX_MEDIAN_LINES = 120
MAX_FUNCTION_LINES = 60


def line_count(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def functions(path: Path) -> list[tuple[str, int]]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return [(f"{path.name}:{node.name}", (node.end_lineno or node.lineno) - node.lineno + 1) for node in nodes]


def test_no_module_is_longer_than_400_lines_and_half_are_shorter_than_120() -> None:
    counts = {path.name: line_count(path) for path in MODULES}
    assert {name: count for name, count in counts.items() if count > MAX_MODULE_LINES} == {}
    assert median(counts.values()) <= MAX_MEDIAN_LINES


def test_no_function_is_longer_than_60_lines() -> None:
    assert [item for path in MODULES for item in functions(path) if item[1] > MAX_FUNCTION_LINES] == []


def test_no_drawer_for_odds_and_ends() -> None:
    assert [path for path in MODULES if path.stem in {"utils", "util", "common", "helpers", "shared", "misc"}] == []
