"""Routing counts of a made-up model, as a framework would log them: a line a step and layer."""

import json
import random
from collections.abc import Iterator
from typing import Any

EXPERTS, TOP_K, TOKENS = 16, 2, 4096
CAPACITY = 768  # factor 1.5
Row = dict[str, Any]


def rows(steps: int, layers: int = 1, *, seed: int = 1, **fields: Any) -> Iterator[Row]:
    """Experts of a little popularity each, and chance; drops follow from the capacity."""
    chance = random.Random(seed)
    liked = {layer: [chance.uniform(0.85, 1.15) for _ in range(EXPERTS)] for layer in range(layers)}
    for step in range(steps):
        for layer in range(layers):
            yield make_row(step, layer, liked[layer], chance, **fields)


def make_row(step: int, layer: int, weights: list[float], chance: random.Random, **fields: Any) -> Row:
    """One line: counts that add up to what the tokens ask for."""
    wanted, whole = TOKENS * TOP_K, sum(weights)
    counts = []
    for weight in weights:
        mean = wanted * weight / whole
        counts.append(max(0, round(chance.gauss(mean, mean**0.5))))
    counts[counts.index(max(counts))] += wanted - sum(counts)
    known = {"capacity": CAPACITY, "top_k": TOP_K, "tokens": TOKENS} | fields
    dropped = sum(max(0, count - known["capacity"]) for count in counts) if known["capacity"] is not None else None
    return {"step": step, "layer": layer, "counts": counts, "dropped": dropped, **known}


def pour(row: Row, weights: list[float]) -> Row:
    """The row with its tokens sent by other weights."""
    chance = random.Random(row["step"] * 1009 + row["layer"])
    fields = {key: row[key] for key in row.keys() - {"step", "layer", "counts", "dropped"}}
    return make_row(row["step"], row["layer"], weights, chance, **fields)


def collapse(row: Row, onset: int) -> Row:
    """The row of a router that likes two experts more and more."""
    return pour(row, [1 + (row["step"] - onset) * 2.0] * 2 + [1.0] * (EXPERTS - 2))


def lines(found: Iterator[Row] | list[Row]) -> bytes:
    """As a file."""
    return "".join(json.dumps(row) + "\n" for row in found).encode()
