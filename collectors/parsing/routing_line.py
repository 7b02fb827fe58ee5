"""One line of routing counts -> what it says, and which of its fields say what no router gives.

A line needs a step, a layer and counts, and a rank must be one where there is one. Of the other fields only the bad value is
left out: a loss that became NaN, which Python writes into JSON as it is, comes just when the counts matter most.
Cost: some 30 us for 64 experts; twice that for a line with a fault.
"""

import json
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from pardbg.watchdog.model.members import MAX_WORLD_SIZE

MOST_EXPERTS = 16_384
MOST_LAYERS = 4_096
LARGEST = 2**53  # beyond it, numbers of other languages are not exact
_DIGITS = 16  # of a step that is written as text

_Number = int | float
_UNREADABLE = (msgspec.MsgspecError, ValueError, OverflowError, RecursionError)  # of UTF-8, too


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of the contract."""

    step: int
    layer: int
    counts: list[_Number]
    rank: int | None = None
    dropped: _Number | list[_Number] | None = None
    predicted_dropped: _Number | list[_Number] | None = None
    capacity: _Number | None = None
    top_k: int | None = None
    tokens: _Number | None = None
    entropy: _Number | None = None
    z: _Number | None = None
    aux_loss: _Number | None = None
    ep_size: int | None = None
    router_grad_norm: _Number | None = None
    loss: _Number | None = None


class ReadLine(NamedTuple):
    """``line`` is None where it cannot be used; ``faults`` says of each field that was left out why, briefly."""

    line: Line | None
    faults: tuple[str, ...] = ()


_LINES = msgspec.json.Decoder(Line)


def read_line(data: bytes) -> ReadLine:
    """Reads one line; never raises."""
    try:
        line = _LINES.decode(data)
        if not any(_faults_of(line)):
            return ReadLine(line)
    except _UNREADABLE:
        pass
    return _mend(data)


def is_of_routing(data: bytes) -> bool:
    """Whether a line has the three keys that no other lines of JSON have together."""
    if b'"counts"' not in data:
        return False
    try:
        told = json.loads(data)
    except _UNREADABLE:
        return False
    return isinstance(told, dict) and {"step", "layer"} <= told.keys() and isinstance(told.get("counts"), list)


def _mend(data: bytes) -> ReadLine:
    """Reads a line field by field. Python's own decoder takes NaN and Infinity, which are no JSON."""
    try:
        told = json.loads(data)
    except _UNREADABLE:
        return ReadLine(None, ("the line is no JSON: cut off or damaged",))
    if not isinstance(told, dict):
        return ReadLine(None, ("the line is no object",))
    missing = [name for name in ("step", "layer", "counts") if name not in told]
    if missing:
        return ReadLine(None, (f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing",))
    fields = {name: told[name] for name in Line.__struct_fields__ if told.get(name) is not None}
    fields |= {name: int(fields[name]) for name in ("step", "layer") if _is_numeral(fields.get(name))}
    experts = len(fields["counts"]) if isinstance(fields.get("counts"), list) else 0
    bad = {name: fault for name, value in fields.items() if (fault := _fault(name, value, experts))}
    bad |= {name: f"{name} is null" for name in ("step", "layer", "counts") if name not in fields}
    fatal = tuple(bad[name] for name in _VITAL if name in bad)
    if fatal:
        return ReadLine(None, fatal)
    return ReadLine(Line(**{name: value for name, value in fields.items() if name not in bad}), tuple(bad.values()))


def _faults_of(line: Line) -> list[str]:
    experts = len(line.counts)
    known = ((name, getattr(line, name)) for name in Line.__struct_fields__)
    return [fault for name, value in known if value is not None and (fault := _fault(name, value, experts))]


def _fault(name: str, value: Any, experts: int) -> str:
    needs, fits = _RULES[name]
    try:
        return "" if fits(value, experts) else f"{name} is {_show(value)}, not {needs}"
    except (TypeError, ValueError, OverflowError):
        return f"{name} is {_show(value)}, not {needs}"


def _show(value: Any) -> str:
    """A value by its kind: a line may hold anything, and only numbers are told as they are."""
    if isinstance(value, list):
        odd = next((one for one in value if not _is_amount(one, 0) or one != int(one)), None)
        return f"a list of {len(value)}{f' with {_show_kind(odd)}' if odd is not None else ''}"
    return _show_kind(value)


def _show_kind(value: Any) -> str:
    if type(value) in {int, float} and abs(value) < LARGEST:
        return f"{value:.6g}"
    kinds = {bool: "true or false", str: "text", list: "a list", dict: "an object"}
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "infinite"
    return kinds.get(type(value), "too large a number")


def _is_numeral(value: Any) -> bool:
    return isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= _DIGITS


def _is_number(value: Any) -> bool:
    return type(value) in {int, float} and -LARGEST < value < LARGEST


def _is_whole(value: Any, least: int, below: int) -> bool:
    return type(value) is int and least <= value < below


def _is_amount(value: Any, experts: int) -> bool:
    del experts
    return _is_number(value) and value >= 0


def _are_drops(value: Any, experts: int) -> bool:
    """One number, or one for each expert."""
    if isinstance(value, list):
        return len(value) == experts and all(_is_amount(one, experts) for one in value)
    return _is_amount(value, experts)


def _are_counts(values: Any, experts: int) -> bool:
    """Whole numbers, be they written with a point; shares and means are no counts."""
    if not isinstance(values, list) or not 2 <= experts <= MOST_EXPERTS or not min(values) >= 0 or not max(values) < LARGEST:
        return False
    return all(type(value) is int or (type(value) is float and value.is_integer()) for value in values)


_AMOUNT = ("a number from 0 on", _is_amount)
_NUMBER = ("a finite number", lambda value, _: _is_number(value))
_SHARED_BY_EXPERTS = ("a whole number from 1 to the number of experts", lambda value, experts: _is_whole(value, 1, experts + 1))
_DROPS = ("a number from 0 on, or one for each expert", _are_drops)
_RULES: dict[str, tuple[str, Callable[[Any, int], bool]]] = {
    "step": ("a whole number from 0 on", lambda value, _: _is_whole(value, 0, LARGEST)),
    "layer": (f"a whole number from 0 to {MOST_LAYERS - 1}", lambda value, _: _is_whole(value, 0, MOST_LAYERS)),
    "counts": (f"a list of 2 to {MOST_EXPERTS} whole numbers from 0 on", _are_counts),
    "rank": ("a rank", lambda value, _: _is_whole(value, 0, MAX_WORLD_SIZE)),
    "dropped": _DROPS,
    "predicted_dropped": _DROPS,
    "capacity": _AMOUNT,
    "top_k": _SHARED_BY_EXPERTS,
    "tokens": _AMOUNT,
    "entropy": _AMOUNT,
    "z": _AMOUNT,
    "aux_loss": _NUMBER,
    "ep_size": _SHARED_BY_EXPERTS,
    "router_grad_norm": _AMOUNT,
    "loss": _NUMBER,
}
_VITAL = ("step", "layer", "counts", "rank")
