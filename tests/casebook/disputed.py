"""Cases that pardbg does not get right yet, and why. Each entry is a debt: a test fails once it is paid and still listed."""

NOT_YET: dict[str, str] = {}
