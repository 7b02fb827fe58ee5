"""Noise floors: what a router without any preference shows by chance, with ``fair`` assignments to each expert on average.

Derived for multinomial counts; checked against simulation (knowledge/moe-routing.md, section 2). Real tokens are correlated,
so a real layer lies several times above them: they are the least that a threshold may be, not the threshold.
"""

from math import log, sqrt

SHORTFALL_OF_A_NORMAL = 0.3989422804014327
"""Mean of max(0, x) of a standard normal x, 1/sqrt(2 pi): the share over a capacity that is exactly the mean."""


def relative_deviation(fair: float) -> float:
    """Standard deviation of one expert's load over the mean load."""
    return 1 / sqrt(fair)


def max_violation(fair: float, experts: int) -> float:
    """Largest load / mean load - 1, about: sqrt(2 ln E / m)."""
    return sqrt(2 * log(experts) / fair)


def entropy_deficit(fair: float, experts: int) -> float:
    """Mean of ln E - entropy of the load, nats: (E - 1) / (2 A)."""
    return (experts - 1) / (2 * fair * experts)


def deficit_deviation(fair: float, experts: int) -> float:
    """Standard deviation of the same, nats: 2 A D is distributed like chi square with E - 1 degrees."""
    return sqrt(2 * (experts - 1)) / (2 * fair * experts)


def drop_ratio(fair: float) -> float:
    """Share dropped where the capacity is the mean load itself (factor 1.0): 0.40 / sqrt(m). Nearly 0 at a factor of 1.25."""
    return SHORTFALL_OF_A_NORMAL / sqrt(fair)
