"""Moments as evidence, reports and incidents write them: RFC 3339."""

from datetime import datetime, timezone


def parse_rfc3339(text: str) -> datetime:
    """The moment; in UTC where the text names no zone.

    Raises:
        ValueError: if it is none.
    """
    moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
