"""``/proc/PID/uid_map``: what user ids are called inside a user namespace."""

from pardbg.watchdog.errors import ParseError


def find_inner_id(text: str, outer: int) -> int | None:
    """What an id of ours is called inside, None if it has no name there.

    Raises:
        ParseError: if it is no such file.
    """
    try:
        ranges = [tuple(int(field) for field in line.split()) for line in text.splitlines()]
        return next((first + outer - ours for first, ours, count in ranges if ours <= outer < ours + count), None)
    except ValueError as error:
        raise ParseError(f"not a /proc/PID/uid_map: {text[:80]!r}") from error
