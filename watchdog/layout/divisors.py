"""Numbers that divide without a rest, to say what would fit."""

from functools import lru_cache
from math import isqrt


@lru_cache(maxsize=256)
def divisors(number: int) -> tuple[int, ...]:
    """All of them, ascending: ``divisors(12) == (1, 2, 3, 4, 6, 12)``. Some milliseconds for numbers of ten digits."""
    low = [factor for factor in range(1, isqrt(number) + 1) if number % factor == 0]
    return (*low, *(number // factor for factor in reversed(low) if factor * factor != number))


def fitting(wanted: int, number: int, most: int = 4) -> str:
    """The divisors of ``number`` nearest to the wanted size, by their ratio to it, in words: ``4 or 8``."""
    nearest = sorted(divisors(number), key=lambda size: (max(size, wanted) / min(size, wanted), size))
    return _in_words(sorted(nearest[:most]))


def multiples_around(wanted: int, step: int) -> str:
    """The multiples of ``step`` below and above, in words: ``36 or 48``."""
    below = wanted // step * step
    return _in_words([multiple for multiple in (below, below + step) if multiple])


def _in_words(numbers: list[int]) -> str:
    *others, last = map(str, numbers)
    return f"{', '.join(others)} or {last}" if others else last
