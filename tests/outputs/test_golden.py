"""Whole texts against golden files: what people see, as they see it."""

import pytest
from tests.outputs.golden_files import FOLDER, rendered

HOW_TO_UPDATE = "if the change is meant: PYTHONSAFEPATH=1 PYTHONPATH=. python -m tests.outputs.golden_files, then read the diff"


@pytest.mark.parametrize("file_name", rendered())
def test_text_is_the_golden_file(file_name: str) -> None:
    assert rendered()[file_name] == (FOLDER / file_name).read_text(encoding="utf-8"), HOW_TO_UPDATE


def test_every_golden_file_has_a_sample() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(rendered())
