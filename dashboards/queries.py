"""Parts of queries that several panels are made of."""

from pardbg.dashboards.panel import Color, Named

JOB = 'job_id="$job_id", world=~"$world"'
"""What the reader has chosen on the dashboard of a job."""
MOST_SERIES = 10
"""A panel of a thousand curves shows nothing."""
STATES = (
    Named(0, "healthy", Color.GOOD),
    Named(1, "recovered", Color.INFO),
    Named(2, "suspect", Color.WARNING),
    Named(3, "hung", Color.BAD),
)


def state_code(by: str, selector: str = "") -> str:
    """The state as one of `STATES`' numbers, the worst of all hosts."""
    more = f"{selector}, " if selector else ""
    parts = (f'{named.value} * pardbg_job_state{{{more}state="{named.text}"}}' for named in STATES)
    return f"max by ({by}) ({' or '.join(parts)})"


def most(expr: str) -> str:
    """The highest few of many series."""
    return f"topk({MOST_SERIES}, {expr})"


def least(expr: str) -> str:
    """The lowest few of many series."""
    return f"bottomk({MOST_SERIES}, {expr})"
