"""What a measuring test has measured: in its output (`-s`) and in JUnit's file (`--junitxml`)."""

import sys
from collections.abc import Callable, Mapping

RecordProperty = Callable[[str, object], None]


def note(record_property: RecordProperty, name: str, figures: Mapping[str, object]) -> None:
    """Keeps them."""
    for key, value in figures.items():
        record_property(f"{name}.{key}", value)
    sys.stdout.write(f"\nFIGURES {name}: {', '.join(f'{key} {value}' for key, value in figures.items())}\n")
    sys.stdout.flush()
