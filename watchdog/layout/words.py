"""How sizes of axes and violations are put into words."""

from collections.abc import Mapping
from math import prod

from pardbg.watchdog.model.layout_report import LayoutRule, Violation
from pardbg.watchdog.model.names import Kind


def describe_sizes(sizes: Mapping[str, int]) -> str:
    """The axes that split something, ``tp 8 x pp 4``; of none of them ``dp 1``."""
    return " x ".join(f"{axis} {size}" for axis, size in sizes.items() if size > 1) or "dp 1"


def describe_product(sizes: Mapping[str, int]) -> str:
    """The same with what they make together, where they are several: ``tp 8 x pp 4 = 32``."""
    words = describe_sizes(sizes)
    return f"{words} = {prod(sizes.values())}" if " x " in words else words


def invalid(rule: LayoutRule, claim: str, advice: str) -> Violation:
    """What makes a layout impossible."""
    return Violation(kind=Kind.LAYOUT_INVALID, rule=rule, claim=claim, advice=advice)


def warning(rule: LayoutRule, claim: str, advice: str) -> Violation:
    """What a layout costs."""
    return Violation(kind=Kind.LAYOUT_WARNING, rule=rule, claim=claim, advice=advice)
